"""Every public name says what it is: modules, functions, classes, members, and the fields of records."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import skyhaul as sh

PACKAGE = Path(sh.__file__).parent
STUB = PACKAGE / "_core.pyi"


def modules():
    found = [sh, sh.analysis, sh.video]
    try:
        from skyhaul import rl
    except ImportError:
        return found
    return [*found, rl]


def members():
    """Every public member by its full name; those of a class are the ones that it defines itself."""
    for module in modules():
        yield module.__name__, module
        for name in module.__all__:
            thing = getattr(module, name)
            if not (inspect.isclass(thing) or callable(thing)):
                continue
            yield f"{module.__name__}.{name}", thing
            if inspect.isclass(thing):
                for member in vars(thing):
                    if not member.startswith("_"):
                        yield f"{module.__name__}.{name}.{member}", getattr(thing, member)


def fields():
    """Annotated attributes of public classes: their names, and the text that follows, or None."""
    public = {name for module in modules() for name in module.__all__} | {"Estimate"}
    for file in [*PACKAGE.glob("*.py"), STUB]:
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.ClassDef) or node.name not in public:
                continue
            for field, after in zip(node.body, [*node.body[1:], None], strict=True):
                if (
                    isinstance(field, ast.AnnAssign)
                    and not field.target.id.startswith("_")
                    and field.target.id != "metadata"  # Gymnasium's.
                ):
                    text = after.value.value if isinstance(after, ast.Expr) else None
                    yield f"{file.stem}.{node.name}.{field.target.id}", text


def test_every_public_member_has_a_docstring():
    names = dict(members())
    assert len(names) > 200
    # A value has no docstring; the test of the fields covers it.
    values = {"skyhaul.Control.policy"}
    missing = [
        name
        for name, thing in names.items()
        if name not in values
        and not isinstance(thing, int | float | str | tuple | dict | list)
        and not (inspect.getdoc(thing) or "").strip()
    ]
    assert missing == []


def test_every_field_of_a_record_is_described():
    found = dict(fields())
    assert len(found) > 60
    assert [name for name, text in found.items() if not text] == []


def test_docstrings_are_sentences():
    texts = {name: inspect.getdoc(thing) or "" for name, thing in members()}
    texts |= {name: text or "" for name, text in fields()}
    for name, text in texts.items():
        assert not re.search(r"\b([a-z]+) \1\b", text), name
        # Keys and pages spell this word with z.
        assert not re.search(r"[Uu]tilis", text), name


def stub_docs():
    """The texts of `_core.pyi` by class and member."""
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        # Some names are those of other classes of the package.
        public = getattr(sh, node.name, None) if isinstance(node, ast.ClassDef) else None
        if public is not None and public is getattr(sh._core, node.name):
            yield (node.name,), ast.get_docstring(node)
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and (text := ast.get_docstring(member)):
                    yield (node.name, member.name), text


@pytest.mark.parametrize(
    ("path", "text"), list(stub_docs()), ids=lambda v: ".".join(v) if isinstance(v, tuple) else ""
)
def test_editors_and_help_say_the_same(path, text):
    thing = sh
    for name in path:
        thing = getattr(thing, name)
    assert inspect.getdoc(thing) == text
