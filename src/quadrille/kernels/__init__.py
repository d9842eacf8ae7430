"""The compiled loops. The only package that imports numba; each kernel has a plain numpy twin in the tests."""

from quadrille.kernels.augment import augment
from quadrille.kernels.board import At, Board, lay_out, read
from quadrille.kernels.candidate import (
    CONFIDENCE,
    ENTROPY_CHANGE,
    EXPOSED,
    HELLINGER,
    SMALL_CELLS,
    TOTAL_VARIATION,
    FullTable,
    score_candidate,
)
from quadrille.kernels.count_space import Urn, compare_tables, swap_cells, swap_records
from quadrille.kernels.counting import count_dominating
from quadrille.kernels.design import draw_rows, improve, price_cells, take_back, treat_all
from quadrille.kernels.draw import draw_pairs, has_partner, put_back, take_any
from quadrille.kernels.edits import Edits, no_edits
from quadrille.kernels.exchange import part_pairs
from quadrille.kernels.fillers import DEATHS_KEPT, room_for
from quadrille.kernels.finalists import nothing_asked
from quadrille.kernels.lattice import loss_now
from quadrille.kernels.market import Market, open_line, open_stock
from quadrille.kernels.partners import near_donors, pair_round, pick_from_groups, rules_leave_nobody
from quadrille.kernels.permute import choose, derange
from quadrille.kernels.pool import Dice, Pool, dice
from quadrille.kernels.smallcells import small_cell_change
from quadrille.kernels.tables import add_ticks, chi_square, net_of_cells, net_of_rows, sort_into_groups
from quadrille.kernels.words import below, shuffle

__all__ = [
    "CONFIDENCE",
    "DEATHS_KEPT",
    "ENTROPY_CHANGE",
    "EXPOSED",
    "HELLINGER",
    "SMALL_CELLS",
    "TOTAL_VARIATION",
    "At",
    "Board",
    "Dice",
    "Edits",
    "FullTable",
    "Market",
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
    "has_partner",
    "improve",
    "lay_out",
    "loss_now",
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
    "read",
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
