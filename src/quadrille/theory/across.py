"""Pairs across two groups: sums over all n1 * n2 pairs, from the groups' moments (derivations/moments.md, 7-9)."""

from __future__ import annotations

from quadrille.theory.spread import Number, ratio

Moments = tuple[tuple[Number, ...], ...]
"""`m[i][j]` is the sum of a^i b^j over the records of a group, i and j from 0 to 2."""

_SQUARE = (1, -2, 1)


def cross_parts(one: Moments, two: Moments) -> tuple[Number, tuple[Number, Number]]:
    """Return T1, the sum of d_xy = -(a_x - a_y)(b_x - b_y), and the two sums of squares that the variance needs.

    They are taken around the mean of d, because the plain ones cancel when the bias is large against its deviation.
    """
    n1, n2 = one[0][0], two[0][0]
    total = -(n2 * one[1][1] + n1 * two[1][1] - one[1][0] * two[0][1] - one[0][1] * two[1][0])
    squares = sum(
        _SQUARE[i] * _SQUARE[j] * one[2 - i][2 - j] * two[i][j]
        for i in range(len(_SQUARE))
        for j in range(len(_SQUARE))
    )
    centred = squares - ratio(total * total, n1 * n2)
    rows = _squared_lines(one, two) - ratio(total * total, n1)
    columns = _squared_lines(two, one) - ratio(total * total, n2)
    return total, (centred, centred - rows - columns)


def _squared_lines(mine: Moments, other: Moments) -> Number:
    """Return the sum over my records of the square of d summed over the other group."""
    terms = ((1, 1, other[0][0]), (1, 0, -other[0][1]), (0, 1, -other[1][0]), (0, 0, other[1][1]))
    return sum(x * y * mine[i + p][j + q] for i, j, x in terms for p, q, y in terms)
