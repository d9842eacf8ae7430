"""The compiled loops. The only package that imports numba; each kernel has a plain numpy twin in the tests."""

from quadrille.kernels.controlled.donors import DonorIndex, Edits, no_edits, open_line, open_stock
from quadrille.kernels.controlled.partners import (
    near_donors,
    nothing_asked,
    pair_round,
    pick_from_groups,
    rules_leave_nobody,
)
from quadrille.kernels.count_space import Urn, compare_tables, swap_cells, swap_records
from quadrille.kernels.designed.design import draw_rows, improve, price_cells, take_back, treat_all
from quadrille.kernels.designed.fillers import room_for
from quadrille.kernels.designed.neighbours import loss_now
from quadrille.kernels.designed.state import fresh
from quadrille.kernels.draw import (
    augment,
    below,
    choose,
    derange,
    draw_pairs,
    has_partner,
    part_pairs,
    put_back,
    shuffle,
    take_any,
)
from quadrille.kernels.fused import (
    CONFIDENCE,
    ENTROPY_CHANGE,
    EXPOSED,
    HELLINGER,
    SMALL_CELLS,
    TOTAL_VARIATION,
    FullTable,
    score_candidate,
)
from quadrille.kernels.pool import Dice, Pool, dice
from quadrille.kernels.tables import (
    add_ticks,
    chi_square,
    count_dominating,
    net_of_cells,
    net_of_rows,
    small_cell_change,
    sort_into_groups,
)
from quadrille.kernels.uniques import mark_lone

__all__ = [
    "CONFIDENCE",
    "ENTROPY_CHANGE",
    "EXPOSED",
    "HELLINGER",
    "SMALL_CELLS",
    "TOTAL_VARIATION",
    "Dice",
    "DonorIndex",
    "Edits",
    "FullTable",
    "Pool",
    "Urn",
    "add_ticks",
    "augment",
    "below",
    "chi_square",
    "choose",
    "compare_tables",
    "count_dominating",
    "derange",
    "dice",
    "draw_pairs",
    "draw_rows",
    "fresh",
    "has_partner",
    "improve",
    "loss_now",
    "mark_lone",
    "near_donors",
    "net_of_cells",
    "net_of_rows",
    "no_edits",
    "nothing_asked",
    "open_line",
    "open_stock",
    "pair_round",
    "part_pairs",
    "pick_from_groups",
    "price_cells",
    "put_back",
    "room_for",
    "rules_leave_nobody",
    "score_candidate",
    "shuffle",
    "small_cell_change",
    "sort_into_groups",
    "swap_cells",
    "swap_records",
    "take_any",
    "take_back",
    "treat_all",
]
