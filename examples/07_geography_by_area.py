"""Households change tracts within their county: counties stay exact; which tracts feel it most?"""

import quadrille as qd

data = qd.datasets.state()  # 320,000 households, 67 counties, 3,200 tracts, all invented
plan = qd.RandomSwap(["tract"], rate=0.02, same=["county", "size"], seed=1).plan(data)

exact = qd.score(data, plan, ["total_variation(county*race)", "total_variation(tract*race)"])
print("county by race:", exact["total_variation(county*race)"], " tract by race:", exact["total_variation(tract*race)"])

scores = qd.score(data, plan, ["effective_swap_rate(race)"], by=["tract"])
print(scores.spread().select("level", "variable", "mean", "sd", "p5", "p95"))
worst = scores.ranking("effective_swap_rate(race)", "tract", top=5, min_records=50)
print(worst.head(5).select("rank", "of", "area", "before", "value"))
