"""What the Markdown tables of the benches share."""

import statistics


def spread(values, scale=1.0, digits=1):
    """Median [least, most]."""
    values = [value / scale for value in values]
    return (f"{statistics.median(values):.{digits}f} "
            f"[{min(values):.{digits}f}, {max(values):.{digits}f}]")


def others(trials):
    """A sentence on what else ran on the two CPUs; nothing without trials."""
    found = [trial["others"] for trial in trials if "others" in trial]
    if not found:
        return ""
    return (f" Of the two CPUs, others took {statistics.median(found):.0%} meanwhile "
            f"(median of trials; at most {max(found):.0%}).")


def failures(trials):
    """A sentence for each name whose trials failed."""
    failed = [trial for trial in trials if "failure" in trial]
    text = ""
    for name in sorted({trial["name"] for trial in failed}):
        reasons = [trial["failure"] for trial in failed if trial["name"] == name]
        rounds = "1 round" if len(reasons) == 1 else f"{len(reasons)} rounds"
        text += f" `{name}` failed in {rounds}: {reasons[0]}."
    return text
