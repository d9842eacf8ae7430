"""No microdata at hand: what would a swap between areas do, and which metric tells?"""

import quadrille as qd

for rate in (0.01, 0.03, 0.05):
    frame = qd.simulate(areas=[5000, 5000, 30000], shares=[0.8, 0.2], rate=rate, replicates=200, seed=1)
    mean = frame.select("chi_square", "effective_swap_rate", "shannon_difference").mean().row(0)
    print(f"rate {rate:.0%}: chi-square {mean[0]:7.2f}   effective rate {mean[1]:.4f}   Shannon {mean[2]:+.6f}")
