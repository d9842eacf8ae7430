"""Job files: which data, which measures, which grids of candidates. TOML, checked before anything is read or written.

A fault is told with its place, as in "job.toml, [grid] rate[2]: must be a number in (0, 1]. Got 1.5."; places in lists
and grids are counted from 1. The data file is only named here: whoever runs the job reads it.
"""

from quadrille.study.job.file import Job

__all__ = ["Job"]
