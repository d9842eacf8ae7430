"""Workers start whole or not at all, and end with whoever started them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

import pytest

from quadrille.study.work import undisturbed, workshop


class Interrupting:
    """Interrupts its process while it is being sent to the second worker: the first runs, the second does not yet."""

    sent = 0

    def __reduce__(self) -> tuple[type[int], tuple[()]]:
        self.sent += 1
        if self.sent == 2:
            time.sleep(1.5)
            os.kill(os.getpid(), signal.SIGINT)
        return int, ()


def begin(parent: int, given: object) -> None:
    pass


def test_an_interrupt_while_workers_start_ends_them_all() -> None:
    with pytest.raises(KeyboardInterrupt), workshop(2, begin, (Interrupting(),), abs):
        pass
    patience = time.monotonic() + 20
    while multiprocessing.active_children() and time.monotonic() < patience:
        time.sleep(0.05)
    left = multiprocessing.active_children()
    for child in left:
        child.kill()
    assert left == []


def test_a_signal_waits_for_the_end_of_the_block_and_comes_then() -> None:
    reached = False
    with pytest.raises(KeyboardInterrupt), undisturbed():
        os.kill(os.getpid(), signal.SIGINT)
        reached = True
    assert reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
