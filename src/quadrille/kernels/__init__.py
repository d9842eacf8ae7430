"""The compiled loops. The only package that imports numba; each kernel has a plain numpy twin in the tests."""

# ruff: noqa: F401
# pyright: reportUnusedImport=false
# What is imported here is what the package offers; the list is not written twice.

from quadrille.kernels.controlled import (
    DonorIndex,
    Edits,
    near_donors,
    no_edits,
    nothing_asked,
    open_line,
    open_stock,
    pair_round,
    pick_from_groups,
    rules_leave_nobody,
)
from quadrille.kernels.count_space import Urn, compare_tables, swap_cells, swap_records
from quadrille.kernels.cycles import ALONE, DOMINATED, ONE_AREA, Cycles, Flagged, Lenders, borrow, make_cycles
from quadrille.kernels.designed import fresh
from quadrille.kernels.designed.cubes import anneal, displace, find, keep_empty, put_all
from quadrille.kernels.designed.design import draw_places, improve, price_cells, take_back, treat_all
from quadrille.kernels.designed.fillers import room_for
from quadrille.kernels.designed.neighbours import fit_margins, loss_now, pair_images
from quadrille.kernels.draw import (
    Dice,
    Pool,
    augment,
    below,
    choose,
    derange,
    dice,
    draw_pairs,
    fitting_groups,
    has_partner,
    part_pairs,
    put_back,
    select,
    shuffle,
    take_any,
)
from quadrille.kernels.fused import (
    ATTRIBUTED,
    ATTRIBUTED_UNIQUE,
    BY_VALUE,
    CLAIMS,
    CONFIDENCE,
    ENTROPY_CHANGE,
    EXPOSED,
    HELLINGER,
    LINKED,
    RIGHT,
    SMALL_CELLS,
    TOTAL_VARIATION,
    UNIQUE_GONE,
    UNIQUE_RIGHT,
    UNIQUE_SHARE,
    UNIQUE_UNDECIDED,
    UNIQUE_WRONG,
    FullTable,
    inference_change,
    inference_sums,
    links_change,
    score_candidate,
)
from quadrille.kernels.rank import (
    Ladder,
    compare_pairs,
    keys_of,
    mean_square_distance,
    pair_by_buckets,
    pair_by_shift,
    pair_in_window,
    reach_by_weight,
    runs_end,
    shuffle_ties,
    sort_keys,
)
from quadrille.kernels.tables import (
    add_codes,
    add_ticks,
    changes_in_order,
    chi_square,
    count_codes,
    count_dominating,
    count_keys,
    count_pairs_of_codes,
    find_rows,
    first_rows,
    hash_at,
    hash_rows,
    lacking_majority,
    mark_lone,
    mixed_within,
    net_of_cells,
    net_of_rows,
    places_in_order,
    put_in_buckets,
    put_rows,
    rows_by_code,
    rows_of_whole_groups,
    runs,
    scatter,
    shared_groups,
    small_cell_change,
    sort_into_groups,
)
from quadrille.kernels.targeted import (
    ANY,
    LEAST_LOSS,
    NEAREST,
    PARENT,
    LossTables,
    Profiles,
    Slots,
    SumTrees,
    Swapped,
    Terms,
    UnitRules,
    begin_in_areas,
    fill_quotas,
    first_places,
    least_in_runs,
    least_in_table,
    plant,
    swap_targets,
)
