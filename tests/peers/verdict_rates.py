"""How often are the verdicts wrong? Trials with known truth, from models and from real launches.

The rules are those of the package and are called as they are; only the timings are generated. A
model makes launches of one benchmark whose code does not change, in the order of time, so that
whatever is called slower is a false alarm. A slowdown is a factor on one side.

    python tests/peers/verdict_rates.py --markdown          # the table of docs/verdicts.md
    python tests/peers/verdict_rates.py --trials 100000
"""

from __future__ import annotations

import argparse
import functools
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opbench import records

ROUNDS = 25
# Launches of most sessions, and of the longest; whole blocks of turns.
SHORT, LONG = 40, 2 * (records.SCREEN_LOOKS[-1] + records.CONFIRM_LOOKS[-1])
# Pairs after which the budget of a tight session ends, before it goes on with more.
CUT = 8
LAUNCHES = 5
AB_FLOOR, COMPARE_FLOOR = 0.03, 0.05
DRIFT = 0.04
CHUNK = 1000
RECORDED = Path(__file__).parents[1] / "records" / "data" / "launches.npz"
BOUND = 0.95


# Models: (trials, launches) values and the machine's speed at each launch.


def noise(draw, shape, spread=0.01):
    """Launches differ by a percent, and heavily in some; rounds scatter, and some are preempted."""
    launch = 1 + spread * np.clip(np.abs(draw.standard_t(2, shape)), 0, 40)
    beside = np.where(draw.random(shape) < 0.08, 1 + 0.6 * draw.random(shape), 1.0)
    rounds = np.exp(0.01 * draw.standard_normal((*shape, ROUNDS)))
    hit = draw.random((*shape, ROUNDS)) < 0.1
    rounds *= np.where(hit, 1.2 + draw.pareto(1.5, (*shape, ROUNDS)), 1.0)
    return lower_quartiles(rounds) * launch * beside


def lower_quartiles(rounds):
    """The value of each launch, as ``records.launch_value`` gives it."""
    return np.quantile(rounds[..., rounds.shape[-1] // 10 :], 0.25, axis=-1)


def heavy_tails(draw, shape):
    """Launches and rounds with heavy tails."""
    return noise(draw, shape), np.ones(shape)


def correlated(draw, shape):
    """Rounds that depend on the round before (0.9), so that a launch wanders off as a whole."""
    step = draw.standard_normal((*shape, ROUNDS)) * math.sqrt(1 - 0.9**2)
    wander = np.empty_like(step)
    wander[..., 0] = draw.standard_normal(shape)
    for index in range(1, ROUNDS):
        wander[..., index] = 0.9 * wander[..., index - 1] + step[..., index]
    launch = np.exp(0.012 * draw.standard_normal(shape))
    return lower_quartiles(np.exp(0.02 * wander)) * launch, np.ones(shape)


def bimodal(draw, shape):
    """A launch has one of two layouts, 6 % apart; rounds fall into a slow mode for a while."""
    layout = np.where(draw.random(shape) < 0.3, 1.06, 1.0)
    slow = np.empty((*shape, ROUNDS), bool)
    slow[..., 0] = draw.random(shape) < 0.4
    for index in range(1, ROUNDS):
        change = draw.random(shape) < np.where(slow[..., index - 1], 0.3, 0.2)
        slow[..., index] = slow[..., index - 1] ^ change
    scatter = np.exp(0.01 * draw.standard_normal((*shape, ROUNDS)))
    return lower_quartiles(np.where(slow, 1.25, 1.0) * scatter) * layout, np.ones(shape)


def drifting(draw, shape):
    """The machine's speed walks by 0.4 % a launch, and steps by 4 % once, up or down."""
    walk = np.exp(np.cumsum(0.004 * draw.standard_normal(shape), axis=1))
    at = draw.integers(1, shape[1], (shape[0], 1))
    step = np.where(np.arange(shape[1]) >= at, 1 + DRIFT, 1.0)
    step = np.where(draw.random((shape[0], 1)) < 0.5, step, 1 / step)
    speed = walk * step
    return noise(draw, shape, 0.007) * speed, speed


MODELS = {
    "heavy tails": heavy_tails,
    "correlated rounds": correlated,
    "bimodal": bimodal,
    "drifting machine": drifting,
}


# Trials


@dataclass
class Count:
    """Verdicts over trials."""

    trials: int = 0
    slower: int = 0
    faster: int = 0
    incomparable: int = 0
    pairs: int = 0

    @property
    def rate(self):
        """Share of trials that were called slower."""
        return self.slower / self.trials

    @property
    def bound(self):
        """Largest rate that would show so few with a probability of 5 %."""
        return upper_bound(self.slower, self.trials)

    @property
    def mean_pairs(self):
        """Pairs of launches that a trial took."""
        return self.pairs / self.trials

    def note(self, verdict, pairs=0):
        """One more trial."""
        self.trials += 1
        self.pairs += pairs
        self.slower += verdict is records.Verdict.REGRESSED
        self.faster += verdict is records.Verdict.IMPROVED
        self.incomparable += verdict is records.Verdict.INCOMPARABLE


def upper_bound(count, trials):
    """One-sided 95 % bound of Clopper and Pearson, by bisection of the binomial tail."""
    if count >= trials:
        return 1.0
    low, high = count / trials, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        tail = sum(
            math.exp(
                math.lgamma(trials + 1)
                - math.lgamma(k + 1)
                - math.lgamma(trials - k + 1)
                + k * math.log(middle)
                + (trials - k) * math.log1p(-middle)
            )
            for k in range(count + 1)
        )
        low, high = (middle, high) if tail > 1 - BOUND else (low, middle)
    return high


def taken_in_turns(draw, values):
    """Base and head of launches in ABBA or BAAB blocks: (trials, pairs) each, pair by pair."""
    trials, launches = values.shape
    blocks = values.reshape(trials, launches // 4, 4)
    swap = draw.random((trials, launches // 4, 1)) < 0.5
    outer, inner = blocks[..., [0, 3]], blocks[..., [1, 2]]
    base, head = np.where(swap, inner, outer), np.where(swap, outer, inner)
    return base.reshape(trials, -1), head.reshape(trials, -1)


class Exhausted(Exception):  # noqa: N818 - an end, and no error
    """A session wants more pairs than there are."""


def judged_pairs(base, head, slowdown=1.0, cut=None):
    """The verdict of ``ab`` on one trial, and how many pairs it took.

    Pairs are taken as a session takes them: more to screen until it has an answer, then fresh ones
    for a suspect until they have one.

    Args:
        base: one value a launch, pair by pair.
        head: the same of the other side.
        slowdown: a factor on head.
        cut: fresh pairs after which the budget ends once; more is given, and the session goes on.

    Raises:
        Exhausted: it wants more pairs than there are.
    """
    base, head = base.tolist(), (head * slowdown).tolist()
    first = grown(records.pairs_to_screen, base, head)
    if not records.screen(base[:first], head[:first], AB_FLOOR):
        return records.Verdict.INCONCLUSIVE, first  # or unchanged: either way no alarm
    fresh = base[first:], head[first:]
    if cut is not None:
        found = judged_after(base, head, first, cut)
        if found in {records.Verdict.REGRESSED, records.Verdict.IMPROVED}:
            return found, first + cut
    more = grown(records.pairs_to_confirm, *fresh)
    return judged_after(base, head, first, more), first + more


def judged_or_none(base, head, slowdown=1.0, cut=None):
    """What ``judged_pairs`` gives; None where it wants more pairs than there are."""
    try:
        return judged_pairs(base, head, slowdown, cut)
    except Exhausted:
        return None


def judged_after(base, head, first, more):
    """The verdict of so many pairs to screen and so many fresh ones."""
    end = first + more
    if end > len(base):
        raise Exhausted
    return records.judge_pairs("trial", base[:end], head[:end], AB_FLOOR, first).verdict


def grown(wanted, base, head):
    """How many pairs a stage takes."""
    count = 0
    while (more := wanted(base[:count], head[:count], AB_FLOOR)) > count:
        if more > len(base):
            raise Exhausted
        count = more
    return count


def ab_count(model, trials, seed, slowdown=1.0, cut=None):
    """Verdicts of ``ab`` on generated launches."""
    draw, count = np.random.default_rng(seed), Count()
    for start in range(0, trials, CHUNK):
        values, speed = MODELS[model](draw, (min(CHUNK, trials - start), SHORT))
        base, head = taken_in_turns(draw, values)
        long = []
        for index, (before, after) in enumerate(zip(base, head, strict=True)):
            judged = judged_or_none(before, after, slowdown, cut)
            if judged is None:
                long.append(index)
            else:
                count.note(*judged)
        if long:
            # They go on with new launches, of a machine as fast as it was in the end.
            values = MODELS[model](draw, (len(long), LONG))[0] * speed[long, -1:]
            more = taken_in_turns(draw, values)
            both = [
                np.hstack([side[long], rest]) for side, rest in zip((base, head), more, strict=True)
            ]
            for before, after in zip(*both, strict=True):
                count.note(*judged_pairs(before, after, slowdown, cut))
    return count


def judged_records(before, after, controls):
    """The verdict of ``compare`` on one trial; the controls decide whether there is one."""
    if records.controls_moved(*controls, COMPARE_FLOOR):
        return records.Verdict.INCOMPARABLE
    return records.judge_values(before, after, COMPARE_FLOOR).verdict


def compare_count(model, trials, seed, slowdown=1.0, launches=LAUNCHES):
    """Verdicts of ``compare`` on generated launches, all of the baseline before the others."""
    draw, count = np.random.default_rng(seed), Count()
    for start in range(0, trials, CHUNK):
        shape = (min(CHUNK, trials - start), 2 * launches)
        values, speed = MODELS[model](draw, shape)
        control = speed * np.exp(0.003 * draw.standard_normal(shape))
        for row, known in zip(values, control, strict=True):
            before, after = row[:launches].tolist(), (row[launches:] * slowdown).tolist()
            controls = known[:launches].tolist(), known[launches:].tolist()
            count.note(judged_records(before, after, controls))
    return count


# Real launches


def recorded():
    """Values of real launches: kernel names, and an array (kernels, launches)."""
    file = np.load(RECORDED)
    return [str(name) for name in file["kernels"]], lower_quartiles(file["tenths_of_ns"] * 1e-10).T


def windows(values, length, stride):
    """Runs of launches that follow each other."""
    return [values[start : start + length] for start in range(0, len(values) - length + 1, stride)]


def ab_on_real(slowdown=1.0, stride=1, seed=7):
    """Verdicts of ``ab`` on real launches that follow each other, relabelled in turns.

    A session that wants more launches than were recorded has found nothing.

    Args:
        slowdown: a factor on head.
        stride: launches from the beginning of one session to that of the next; None lets them
            follow each other, so that no launch is in two of them.
        seed: draws the turns.
    """
    draw, count = np.random.default_rng(seed), Count()
    for values in recorded()[1]:
        start = 0
        while len(values) - start >= SHORT:
            whole = (len(values) - start) // 4 * 4
            base, head = taken_in_turns(draw, values[None, start : start + whole])
            judged = judged_or_none(base[0], head[0], slowdown)
            found, pairs = judged or (records.Verdict.INCONCLUSIVE, whole // 2)
            count.note(found, pairs)
            start += 2 * pairs + 2 * pairs % 4 if stride is None else stride
    return count


def compare_on_real(slowdown=1.0, stride=1, launches=LAUNCHES):
    """Verdicts of ``compare`` on windows of real launches; there were no controls beside them."""
    count = Count()
    for values in recorded()[1]:
        for window in windows(values, 2 * launches, stride):
            before, after = window[:launches].tolist(), (window[launches:] * slowdown).tolist()
            count.note(records.judge_values(before, after, COMPARE_FLOOR).verdict)
    return count


# The table


SLOWDOWNS = (1.03, 1.05, 1.1, 1.2)


# As the table calls it; how it counts on a model, and from which seed on.
RULES = {
    "ab": (ab_count, 0),
    "ab, ended once and resumed": (functools.partial(ab_count, cut=CUT), 200),
    "compare, 5 launches": (compare_count, 0),
}
REAL = {"ab": (ab_on_real, None), "compare, 5 launches": (compare_on_real, 2 * LAUNCHES)}


def rows(trials, power_trials, only=""):
    """(rule, data, trials, false alarms, bound, power by slowdown) of each row."""
    for rule, (counted, seed) in RULES.items():
        for index, model in enumerate(MODELS):
            if only not in f"{rule} {model}":
                continue
            null = counted(model, trials, seed=seed + index)
            power = [
                counted(model, power_trials, seed + 100 + index, slowdown).rate
                for slowdown in SLOWDOWNS
            ]
            yield rule, model, null, null.bound, power
    for rule, (counted, stride) in REAL.items():
        if only in f"{rule} 300 real launches":
            # What overlaps is no independent trial: the bound is that of what does not.
            apart = counted(stride=stride)
            power = [counted(slowdown).rate for slowdown in SLOWDOWNS]
            yield rule, "300 real launches", counted(), apart.bound, power


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--power-trials", type=int, default=2_000)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--only", default="", help="rows whose rule and data hold this")
    options = parser.parse_args()
    heads = [f"{100 * (slowdown - 1):.0f} % found" for slowdown in SLOWDOWNS]
    heading = ["rule", "data", "trials", "falsely slower", "95 % bound", "falsely faster", *heads]
    bar = "| {} |" if options.markdown else "{}"
    join = " | " if options.markdown else "   "
    print(bar.format(join.join(heading)))
    if options.markdown:
        print(bar.format(join.join(["---", "---", *["---:"] * (len(heading) - 2)])))
    for rule, data, null, bound, power in rows(options.trials, options.power_trials, options.only):
        texts = [rule, data, f"{null.trials:,}", f"{null.slower} ({null.rate:.3%})", f"{bound:.3%}"]
        texts += [str(null.faster), *(f"{rate:.0%}" for rate in power)]
        print(bar.format(join.join(texts)), flush=True)


if __name__ == "__main__":
    main()
