"""The faults that are put into the source: where each can go, and how it reads.

Much the same as those of cargo-mutants: another body for a function, another operator, no
negation, a guard that always or never holds, a match arm less, and a statement less.
"""

import re
from dataclasses import dataclass, field

import tree_sitter_rust
from tree_sitter import Language, Parser

PARSER = Parser(Language(tree_sitter_rust.language()))

BINARY = {
    "==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"],
    "<": ["<=", ">"], "<=": ["<", ">"], ">": [">=", "<"], ">=": [">", "<"],
    "+": ["-", "*"], "-": ["+", "/"], "*": ["+", "/"], "/": ["*", "%"], "%": ["/", "+"],
    "<<": [">>"], ">>": ["<<"], "&": ["|", "^"], "|": ["&", "^"], "^": ["|", "&"],
}
ASSIGN = {"+=": ["-=", "*="], "-=": ["+=", "/="], "*=": ["+=", "/="], "|=": ["&=", "^="],
          "&=": ["|="], "^=": ["|="], "<<=": [">>="], ">>=": ["<<="]}
INTEGERS = {"u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "isize"}


@dataclass
class Mutant:
    path: str
    line: int
    function: str
    what: str
    node: tuple  # kind, start and end byte of what is wrapped
    variant: str
    number: int = 0

    @property
    def name(self):
        return f"{self.path}:{self.line}: {self.what} in {self.function}"


@dataclass
class Source:
    path: str
    text: bytes
    mutants: list = field(default_factory=list)

    def of(self, node):
        return self.text[node.start_byte:node.end_byte].decode()


def values(kind):
    """Values of a type that a function could return instead of its own."""
    kind = kind.strip()
    if kind in ("", "()"):
        return ["()"]
    if kind == "bool":
        return ["true", "false"]
    if kind in INTEGERS:
        return ["0", "1"]
    if kind == "String":
        return ["String::new()", '"xyzzy".to_owned()']
    if re.fullmatch(r"&('\w+ )?str", kind):
        return ['""', '"xyzzy"']
    if match := re.fullmatch(r"Option<(.*)>", kind, re.S):
        return ["None", *(f"Some({value})" for value in values(match[1])[:2])]
    if match := re.fullmatch(r"(?:fmt::)?Result(?:<(.*)>)?", kind, re.S):
        first = ok_type(match[1] or "()")
        return [f"Ok({value})" for value in values(first)]
    if re.match(r"(Vec|BTreeMap|BTreeSet|HashMap)<", kind):
        return ["Default::default()"]
    if match := re.fullmatch(r"\[u8; .*\]", kind):
        return ["Default::default()"]
    if kind.startswith(("&", "impl ", "Box<", "Arc<", "dyn ", "!")) or "'" in kind:
        return []
    return ["Default::default()"]


def ok_type(inside):
    depth = 0
    for at, char in enumerate(inside):
        depth += (char in "<([") - (char in ">)]")
        if char == "," and depth == 0:
            return inside[:at]
    return inside


def mutants_of(source):
    walk(source, PARSER.parse(source.text).root_node, None)
    return source.mutants


def walk(source, node, function):
    skip_next = False
    for child in node.named_children:
        if child.type == "attribute_item":
            text = source.of(child)
            skip_next |= bool(re.search(r"cfg\(|\btest\b|\bderive\b", text)) and "cfg" in text
            skip_next |= text == "#[test]"
            continue
        if child.type in ("line_comment", "block_comment"):
            continue
        skipped, skip_next = skip_next, False
        if skipped or child.type in ("const_item", "static_item", "macro_invocation", "macro_definition"):
            continue
        if child.type == "function_item":
            modifiers = [source.of(c) for c in child.children if c.type == "function_modifiers"]
            if any("const" in text for text in modifiers) or child.child_by_field_name("body") is None:
                continue
            bodies(source, child)
            walk(source, child.child_by_field_name("body"), child)
            continue
        if function is not None:
            operators(source, child, function)
        walk(source, child, function)


def add(source, function, node, kind, what, variant, span=None):
    start, end = span or (node.start_byte, node.end_byte)
    name = source.of(function.child_by_field_name("name"))
    what = re.sub(r"\s+", " ", what)
    source.mutants.append(
        Mutant(source.path, node.start_point[0] + 1, name, what, (kind, start, end), variant))


def bodies(source, function):
    kind = function.child_by_field_name("return_type")
    kind = source.of(kind) if kind else ""
    body = function.child_by_field_name("body")
    plain = source.of(body).strip("{} \n")
    if not plain:
        return
    for value in values(kind):
        if plain != value:
            add(source, function, body, "body", f"the whole body is {value}", value)


def operators(source, node, function):
    text = source.of(node)
    if node.type == "binary_expression":
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = source.of(node.child_by_field_name("operator"))
        if node.parent.type == "let_chain" and operator in ("&&", "||"):
            return
        for other in BINARY.get(operator, []):
            variant = f"{source.of(left)} {other} {source.of(right)}"
            add(source, function, node, "value", f"{operator} becomes {other} in `{text:.70}`", variant)
    elif node.type == "compound_assignment_expr":
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = source.of(node.child_by_field_name("operator"))
        for other in ASSIGN.get(operator, []):
            variant = f"{source.of(left)} {other} {source.of(right)}"
            add(source, function, node, "value", f"{operator} becomes {other} in `{text:.70}`", variant)
    elif node.type == "unary_expression" and text[0] in "!-":
        if node.named_children[0].type not in ("integer_literal", "float_literal"):
            add(source, function, node, "value", f"no {text[0]} in `{text:.70}`", source.of(node.named_children[0]))
    elif node.type == "expression_statement" and node.named_children:
        inner = node.named_children[0]
        if inner.type in ("call_expression", "try_expression"):
            add(source, function, node, "statement", f"no `{text:.70}`", "")
    elif node.type == "match_block":
        arms = [arm for arm in node.named_children if arm.type == "match_arm"]
        patterns = [arm.child_by_field_name("pattern") for arm in arms]
        guards = [pattern.child_by_field_name("condition") for pattern in patterns]
        has_rest = any(source.of(pattern).strip() == "_" for pattern in patterns)
        for pattern, guard in zip(patterns, guards):
            if guard is not None and guard.type not in ("let_chain", "let_condition"):
                for value in ("true", "false"):
                    add(source, function, guard, "value", f"guard `{source.of(guard):.70}` is {value}", value)
            elif guard is None and has_rest and source.of(pattern).strip() != "_":
                add(source, function, pattern, "arm", f"no arm `{source.of(pattern):.70}`", "")


def instrumented(source, chosen):
    """The text with each chosen mutant behind its number."""
    by_node = {}
    for mutant in chosen:
        by_node.setdefault(mutant.node, []).append(mutant)
    spans = sorted(by_node, key=lambda node: (node[1], -node[2], node[0] != "statement"))
    text, at = render(source, spans, 0, 0, len(source.text), by_node)
    assert at == len(spans)
    return text


ON = "crate::mutant::on()"


def render(source, spans, at, start, end, by_node):
    out, position = [], start
    while at < len(spans) and spans[at][1] < end:
        node = spans[at]
        kind, first, last = node
        assert last <= end
        out.append(source.text[position:first].decode())
        here = by_node[node]
        inner, at = render(source, spans, at + 1, first, last, by_node)
        marked = lambda mutant: f"/*<{mutant.number}*/{mutant.variant}/*{mutant.number}>*/"
        if kind == "body":
            returns = "".join(f"if {ON} == {m.number} {{ return {marked(m)}; }} " for m in here)
            out.append("{ " + returns + inner[1:])
        elif kind == "arm":
            tests = "".join(f"/*<{m.number}*/if {ON} != {m.number}/*{m.number}>*/" for m in here)
            out.append(f"{inner} {tests}")
        elif kind == "statement":
            tests = "".join(f"/*<{m.number}*/if {ON} != {m.number}/*{m.number}>*/" for m in here)
            out.append(f"{tests} {{ {inner} }}")
        else:
            arms = "".join(f"{m.number} => {{ {marked(m)} }} " for m in here)
            out.append(f"(match {ON} {{ {arms}_ => {{ {inner} }} }})")
        position = last
    out.append(source.text[position:end].decode())
    return "".join(out), at
