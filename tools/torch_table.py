"""Generate python_bindings/framegate/ops/torch_table.py: torch's operations, from the declarations that its wheel carries plus tools/torch_rules.py.

Run without arguments to write the file, with --check to fail if it is stale. Runs against the torch that is installed; the table works with other
versions too, since names that a version lacks are skipped.

The declarations (torchgen's native_functions.yaml) give each overload's arguments, which of them it writes or returns a view of, how many tensors it
returns, and tags: random, data-dependent shape, pointwise. The overloads of one public name become one row, the most careful of all: a flag that any
overload needs is set.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import re
import sys
import types
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import torch_rules as rules  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "python_bindings" / "framegate" / "ops" / "torch_table.py"
TENSOR_TYPE = re.compile(r"^(Tensor|Scalar)(\([a-z!|> *-]*\))?(\[\d*\])?\??(\[\d*\])?\??$")
NUMPY_NAMES = {"dim": "axis", "keepdim": "keepdims"}  # the parser of torch's bindings accepts both


class Overload:
    """One declaration, taken apart."""

    def __init__(self, entry: dict) -> None:
        text = entry["func"]
        self.full_name, rest = text.split("(", 1)
        self.name = self.full_name.split(".")[0]
        depth, end = 1, 0
        while depth:
            depth += {"(": 1, ")": -1}.get(rest[end], 0)
            end += 1
        self.args = []  # (type, name, keyword_only)
        keyword_only = False
        for part in split_top(rest[: end - 1]):
            if part == "*":
                keyword_only = True
                continue
            head = part.split("=", 1)[0]
            kind, name = head.rsplit(" ", 1)
            self.args.append((kind, name, keyword_only))
        returns = rest[end:].split("->", 1)[1].strip()
        self.returns = split_top(returns[1:-1]) if returns.startswith("(") else [returns]
        tags = entry.get("tags") or []
        self.tags = {tags} if isinstance(tags, str) else set(tags)
        self.variants = {v.strip() for v in entry.get("variants", "function").split(",")}
        self.module = entry.get("python_module", "")
        dispatch = entry.get("dispatch") or {}
        keys = ",".join(dispatch)
        composite = "CompositeImplicitAutograd" in keys or (not dispatch and "structured_delegate" not in entry)
        self.is_composite = composite
        self.is_out = any("!" in k and n in ("out",) or (k.startswith("Tensor(") and "!" in k and kw) for k, n, kw in self.args)
        self.is_usable = not any(re.match(r"Dimname|Storage|Stream", k) for k, _, _ in self.args)


def split_top(text: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return parts + [last] if last else parts


def refusal(name: str) -> str | None:
    """The reason of the first rule that refuses this declared name."""
    if name in rules.NOT_REFUSED:
        return None
    bare = name.rstrip("_")
    for reason, patterns in rules.REFUSED:
        for pattern in patterns.split():
            if fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(bare, pattern):
                return reason
    return None


def role_mark(kind: str) -> str | None:
    """The mark of an argument type; the empty string is an operand."""
    if "Generator" in kind:
        return "=None"
    if TENSOR_TYPE.match(kind):
        return "!" if "!" in kind else ""
    return ":"


def build_signature(base: str, overloads: list[Overload], is_method: bool, has_out: bool) -> tuple[str, bool]:
    """The signature text of all overloads together, and whether scalars may be run-time values."""
    positions: list[dict] = []
    keywords: dict[str, str] = {}
    scalars, mixed, rest = False, False, False
    strongest = {"!": 3, "": 2, "=None": 1, ":": 0}
    for overload in overloads:
        index = 0
        n_positional = sum(not kw for _, _, kw in overload.args)
        for kind, name, keyword_only in overload.args:
            mark = "!" if name in rules.WRITTEN_ARGUMENTS else role_mark(kind)
            if kind.startswith("Scalar") and base in rules.NO_SCALARS:
                mark = ":"
            if name == "self" and not is_method:
                name = "input"
            if keyword_only:
                keywords[name] = max(keywords.get(name, mark), mark, key=strongest.get)
                continue
            if index == len(positions):
                positions.append({"name": name, "mark": mark, "kinds": set()})
            slot = positions[index]
            slot["kinds"].add("Scalar" if kind.startswith("Scalar") else "Tensor" if mark in ("", "!") else "constant")
            if name != slot["name"]:
                keywords[name] = max(keywords.get(name, mark), mark, key=strongest.get)
            slot["mark"] = max(slot["mark"], mark, key=strongest.get)
            alone = n_positional - (1 if is_method else 0) == 1 and index == (1 if is_method else 0)
            rest = rest or (alone and re.match(r"^(Sym)?[Ii]nt\[\]$", kind) is not None)
            index += 1
        if any(k.startswith("ScalarType") for k, _, kw in overload.args if kw) and any(n == "layout" for _, n, _ in overload.args):
            keywords["requires_grad"] = ":"
    for slot in positions:
        if "Scalar" in slot["kinds"]:
            scalars = True
            mixed = mixed or "constant" in slot["kinds"]
    scalars = scalars or any(k.startswith("Scalar") and not k.startswith("ScalarType") and kw for o in overloads for k, _, kw in o.args)
    seen: set[str] = set()
    for slot in positions:
        if slot["name"] in seen:  # arange(end) and arange(start, end): the later position keeps only its place
            slot["name"] += "_"
        seen.add(slot["name"])
        keywords.pop(slot["name"], None)
    names = {slot["name"] for slot in positions} | set(keywords)
    for torch_name, numpy_name in NUMPY_NAMES.items():
        if torch_name in names and numpy_name not in names:
            keywords[numpy_name] = ":"
    if has_out:
        keywords["out"] = ">"
    for slot in positions:
        if base in rules.COUNTS and slot["name"].rstrip("_") == rules.COUNTS[base]:
            slot["mark"] = "#"
        if not is_method and slot["name"] in rules.REQUIRED.get(base, ()):
            slot["mark"] = "+"
    words = [slot["name"] + slot["mark"] for slot in positions]
    if rest:
        words.append("*rest:")
    if keywords:
        words.append("|")
        words += [name + mark for name, mark in keywords.items()]
    return " ".join(words), scalars and not mixed


def result_kind(name: str, overload: Overload) -> str | None:
    """RESULT word of one overload; None: not something an operation returns."""
    returns = overload.returns
    if not returns or returns == [""]:
        return "NONE"
    if len(returns) == 1:
        kind = returns[0].split(" ")[0]
        if re.match(r"^Tensor(\([^)]*\))?$", kind):
            first = overload.args[0][0] if overload.args else ""
            return "SELF" if "!" in kind and "!" in first else "TENSOR"
        if re.match(r"^Tensor(\([^)]*\))?\[\d*\]$", kind):
            return "TENSORS"
        if name in rules.RESULT_META:
            return "META"
        return "SCALAR" if name in rules.RESULT_SCALAR else None
    return "TENSORS" if all(r.startswith("Tensor") for r in returns) else None


def build_row(name: str, overloads: list[Overload], is_method: bool) -> tuple[str, str, str, str] | str:
    """(result, raises, flags, signature) of a public name, or the reason why it has none."""
    reason = refusal(name)
    if reason:
        return reason
    outs = [o for o in overloads if o.is_out]
    plain = [o for o in overloads if not o.is_out and o.is_usable]
    if not plain:
        return "named dimensions or storages are never captured" if not outs else "only writes into out="
    kinds = {result_kind(name, o) for o in plain}
    if None in kinds:
        return "its result is neither tensors nor a known Python value"
    result = kinds.pop() if len(kinds) == 1 else "OTHER"
    has_tensor = all(any(k.startswith("Tensor") for k, _, _ in o.args) for o in plain)
    base = name.rstrip("_") if not name.startswith("__") else name
    flags = set()
    signature, scalars = build_signature(base, plain, is_method, bool(outs) and not is_method)
    if any(o.args and "!" in o.args[0][0] for o in plain):
        flags.add("W")
    if (any("dynamic_output_shape" in o.tags for o in plain) or base in rules.DATA_OUTPUT):
        flags.add("D")
    if any("inplace_view" in o.tags for o in plain) or name in ("resize_", "resize_as_", "set_", "addbmm_"):
        flags.add("CHANGES_META")
    if any("nondeterministic_seeded" in o.tags for o in plain) or name in rules.STATE:
        flags.add("STATE")
    if outs and not is_method:
        flags.add("O")
    if scalars and base not in rules.NO_SCALARS:
        flags.add("S")
    if not has_tensor:
        flags.add("CREATES")
    is_view = any("(" in r and "!" not in r for o in plain for r in o.returns)
    may_alias = any(o.is_composite for o in plain) and base not in rules.FRESH and has_tensor
    if result in ("TENSOR", "TENSORS", "OTHER") and (is_view or may_alias):
        flags |= {"V", "R"}
    careful = all("pointwise" in o.tags for o in plain) or base in rules.RAISES_METADATA or (is_view and "D" not in flags) or not has_tensor
    raises = "META_RAISES" if careful and base not in rules.RAISES_DATA and name not in rules.RAISES_DATA else "DATA_RAISES"
    if base in rules.NEEDS_DATA:
        flags.add("NEEDS_DATA")
    order = ["D", "W", "O", "V", "R", "S", "STATE", "CREATES", "CHANGES_META", "NEEDS_DATA"]
    return result, raises, " | ".join(f for f in order if f in flags) or "0", signature


def collect() -> tuple[dict[str, dict[str, tuple]], dict[str, str]]:
    """owner -> public name -> row; and public dotted name -> reason for those without one."""
    import torch
    import torchgen
    import yaml

    path = os.path.join(os.path.dirname(torchgen.__file__), "packaged/ATen/native/native_functions.yaml")
    entries = yaml.load(Path(path).read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    by_name: dict[str, list[Overload]] = defaultdict(list)
    for entry in entries:
        overload = Overload(entry)
        by_name[overload.name].append(overload)
    owners = {
        "torch": (torch, "", ""),
        "Tensor": (torch.Tensor, "", ""),
        "torch.nn.functional": (torch.nn.functional, "", "nn"),
        "torch.linalg": (torch.linalg, "linalg_", "linalg"),
        "torch.fft": (torch.fft, "fft_", "fft"),
        "torch.special": (torch.special, "special_", "special"),
    }
    rows: dict[str, dict[str, tuple]] = {owner: {} for owner in owners}
    reasons = {}
    for owner, (place, prefix, module) in owners.items():
        is_method = owner == "Tensor"
        builtin_type = types.MethodDescriptorType if is_method else types.BuiltinFunctionType
        for public in sorted(dir(place)):
            if public.startswith("_") or not isinstance(getattr(place, public), builtin_type):
                continue
            declared = by_name.get(prefix + public, [])
            if is_method:
                declared = [o for o in declared if "method" in o.variants and o.args and not o.is_out or o.is_out]
            else:
                declared = [o for o in declared if "function" in o.variants and o.module in (module, "")]
            if not [o for o in declared if not o.is_out]:
                continue
            row = build_row(prefix + public, declared, is_method)
            if isinstance(row, str):
                reasons[f"{owner}.{public}"] = row
            else:
                rows[owner][public] = row
    return rows, reasons


def render(rows: dict[str, dict[str, tuple]], reasons: dict[str, str]) -> str:
    """The text of the generated module."""
    used = {word for by_public in rows.values() for row in by_public.values() for word in map(str, row[:3])}
    words = {word for text in used for word in re.findall(r"[A-Z_]+", text)}
    lines = [
        '"""Generated by tools/torch_table.py; do not edit. Rows of torch that its declarations describe; see torch_ops.py for the rest."""',
        "",
        "from .row_spec import (",
        *(f"    {word}," for word in sorted(words, key=lambda word: (len(word) == 1, word))),
        ")",
        "",
        "TABLES = {",
    ]
    for owner, by_public in rows.items():
        groups: dict[tuple, list[str]] = defaultdict(list)
        for public, row in by_public.items():
            groups[row].append(public)
        lines.append(f'    "{owner}": (')
        for (result, raises, flags, signature), names in sorted(groups.items(), key=lambda item: item[1][0]):
            lines.append(f'        ({result}, {raises}, {flags}, "{signature}",')
            lines.append(f'         "{" ".join(names)}"),')
        lines.append("    ),")
    lines += ["}", "", "# Public names whose declarations are known and which are no operations, by reason.", "REFUSED = {"]
    by_reason: dict[str, list[str]] = defaultdict(list)
    for dotted, reason in reasons.items():
        by_reason[reason].append(dotted)
    for reason in sorted(by_reason):
        lines.append(f'    "{reason}":')
        lines.append(f'        "{" ".join(sorted(by_reason[reason]))}",')
    return "\n".join(lines + ["}", ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the file is stale; write nothing")
    check = parser.parse_args().check
    text = render(*collect())
    if check:
        return 0 if TARGET.read_text() == text else print(f"{TARGET} is stale: run tools/torch_table.py") or 1
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
