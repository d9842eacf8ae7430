"""A question of a data user: what does the share of graduates among the well paid become, by rate?"""

import quadrille as qd

data = qd.datasets.cps8d()


def graduates(file: qd.Data) -> float:
    """Return the share of records with a bachelor's degree or more among those with 50K or more."""
    frame = file.frame()
    paid = frame.filter(frame["AnnSal"] != "<50K")
    return paid["Edu"].is_in(["Bach", "Bach+"]).mean()


before = graduates(data)
print(f"before {before:.4f}")
for rate in (0.01, 0.05, 0.20):
    after = [graduates(qd.RandomSwap(["Edu"], rate=rate, seed=seed).plan(data).apply(data)) for seed in range(5)]
    print(f"rate {rate:.0%}: after {min(after):.4f} to {max(after):.4f}")
