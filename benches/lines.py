#!/usr/bin/env python3
"""Counts lines of production code per crate, and the types that each defines.

    benches/lines.py [--types CRATE] [REVISION]

A line counts if code is on it: no blanks, no comments, no tests. Tests are files named `tests.rs`, directories named `tests` or
`fixture`, fixtures, and items behind `#[cfg(test)]` or the feature `fixture`, modules in files of their own included. With a revision, that commit is counted instead of
the files here. `--types` lists the structs, enums, traits and aliases of a crate. Standard library only."""

import collections
import re
import subprocess
import sys

# A comment, a string or a character; what is left is code.
TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/'
    r'|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"'
    r"|b?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[0-9a-fA-F]+\}|.)|[^'\\\n])'",
    re.S,
)
TYPE = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?(?:unsafe )?(struct|enum|trait|type|union) (\w+)", re.M)
TEST = re.compile(r'#\[cfg\((?:test|any\(test, feature = "fixture"\)|feature = "fixture")\)\]')
TEST_MODULE = re.compile(TEST.pattern + r"\s*(?:pub(?:\([^)]*\))? )?mod (\w+);")


def files(revision):
    """The production sources: path and text."""
    listing = ["git", "ls-tree", "-r", "--name-only", revision] if revision else ["git", "ls-files"]
    for path in subprocess.run(listing, capture_output=True, text=True, check=True).stdout.splitlines():
        if not re.match(r"(src|crates/[^/]+/src)/.*\.rs$", path) or re.search(r"(^|/)(tests|fixture)(/|\.rs$)", path):
            continue
        if revision:
            yield path, subprocess.run(["git", "show", f"{revision}:{path}"], capture_output=True, text=True, check=True).stdout
        else:
            yield path, open(path, encoding="utf-8").read()


def places(path, module):
    """Where a module that a file declares may be."""
    directory, name = path.rsplit("/", 1)
    if name not in ("mod.rs", "lib.rs", "main.rs"):
        directory = path.removesuffix(".rs")
    return [f"{directory}/{module}.rs", f"{directory}/{module}/mod.rs"]


def production(text):
    """The text without comments and tests. Strings keep their lines, but not their content."""

    def plain(match):
        token = match.group()
        if token.startswith("/"):
            return re.sub(r"[^\n]", "", token)
        return re.sub(r"[^\n]", "s", token)

    # Attributes of tests are found before strings lose their content.
    marks = [match.start() for match in TEST.finditer(text)]
    code = TOKEN.sub(lambda match: plain(match).ljust(len(match.group())) if "\n" not in match.group() else padded(match, plain), text)
    for mark in reversed(marks):
        if code[mark] != "#":
            continue  # in a comment
        code = code[:mark] + re.sub(r"[^\n]", " ", code[mark : end_of_item(code, mark)]) + code[end_of_item(code, mark) :]
    return code


def padded(match, plain):
    """A token of several lines, each as long as before."""
    before, after = match.group().split("\n"), plain(match).split("\n")
    return "\n".join(new.ljust(len(old)) for old, new in zip(before, after))


def end_of_item(code, at):
    """Where the item that begins with an attribute ends: at its semicolon, or at its closing brace."""
    depth = 0
    for place in range(code.index("]", at) + 1, len(code)):
        c = code[place]
        if c in "{([":
            depth += 1
        elif c in "})]":
            depth -= 1
            if depth < 0:
                return place
            if depth == 0 and c == "}":
                return place + 1
        elif c in ";," and depth == 0:
            return place + 1
    return len(code)


def main(arguments):
    of_crate = None
    if arguments[:1] == ["--types"]:
        of_crate, arguments = arguments[1], arguments[2:]
    lines, types = collections.Counter(), collections.defaultdict(list)
    sources = dict(files(arguments[0] if arguments else None))
    tests = {place for path, text in sources.items() for name in TEST_MODULE.findall(text) for place in places(path, name)}
    for path, text in sources.items():
        if path in tests:
            continue
        crate = path.split("/")[1] if path.startswith("crates/") else "src"
        code = production(text)
        lines[crate] += sum(1 for line in code.splitlines() if line.strip())
        types[crate] += [f"{path}: {kind} {name}" for kind, name in TYPE.findall(code)]
    if of_crate:
        print("\n".join(types[of_crate]))
        return
    print(f"{'crate':20} {'lines':>7} {'types':>6}")
    for crate in sorted(lines):
        print(f"{crate:20} {lines[crate]:7,} {len(types[crate]):6,}")
    print(f"{'all':20} {sum(lines.values()):7,} {sum(map(len, types.values())):6,}")


if __name__ == "__main__":
    main(sys.argv[1:])
