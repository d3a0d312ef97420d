"""CloudWatch's metric math, as far as scaling policies need it: expressions over series on one grid of periods. Pure.

Arithmetic (+ - * / ^), comparisons and && || ! (1 and 0), and ABS CEIL FLOOR IF FILL PERIOD MIN MAX SUM AVG.
A series has a value or None in each period. What is computed from a missing value, or divided by zero, is missing.
MIN, MAX, SUM and AVG of one series are one number; of a list of series they are a series, over what is there. Anything
else (SEARCH, ANOMALY_DETECTION_BAND, ...) is refused when the policy is put, not when it is evaluated.
"""

from __future__ import annotations

import ast
import itertools
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Series = tuple[float | None, ...]
Value = float | Series


class ExpressionError(ValueError):
    """The expression cannot be understood; the message says why."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A checked expression."""

    text: str
    tree: ast.expr
    names: frozenset[str]
    """Ids it refers to."""

    def evaluate(self, series: Mapping[str, Series], period_s: float, length: int) -> Series:
        """Its series, `length` periods of `period_s` long. `series` holds every id in `names`."""
        evaluation = _Evaluation(series, period_s, length)
        return evaluation.grid(evaluation.of(self.tree))


def parse(text: str) -> Expression:
    """Check an expression. Raises `ExpressionError`."""
    # Python reads the rest of the grammar as CloudWatch does; only these spellings differ.
    python = re.sub(r"!(?!=)", " not ", text.replace("&&", " and ").replace("||", " or ").replace("^", "**"))
    try:
        tree = ast.parse(python.strip(), mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"{text!r} is not a metric math expression: {error.msg}") from error
    names = set[str]()
    _check(tree, names)
    return Expression(text, tree, frozenset(names))


_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ROUNDINGS: dict[str, Callable[[float], float]] = {"ABS": abs, "CEIL": math.ceil, "FLOOR": math.floor}
_REDUCTIONS: dict[str, Callable[[Sequence[float]], float]] = {
    "MIN": min,
    "MAX": max,
    "SUM": math.fsum,
    "AVG": lambda values: math.fsum(values) / len(values),
}
_ARGUMENTS = {"IF": (2, 3), "FILL": (2, 2), "PERIOD": (1, 1)} | dict.fromkeys([*_ROUNDINGS, *_REDUCTIONS], (1, 1))
FUNCTIONS = tuple(_ARGUMENTS)
"""Those that are known here."""
_FILLS = ("REPEAT", "LINEAR")


def _check(node: ast.expr, names: set[str]) -> None:
    match node:
        case ast.Constant(value=bool()):
            raise ExpressionError("true and false are not metric math; use 1 and 0")
        case ast.Constant(value=int() | float()):
            pass
        case ast.Name(id=name):
            names.add(name)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            _check(left, names)
            _check(right, names)
        case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=operand):
            _check(operand, names)
        case ast.BoolOp(values=values):
            for value in values:
                _check(value, names)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
            _check(left, names)
            _check(right, names)
        case ast.Call(func=ast.Name(id=function), args=arguments, keywords=[]):
            _check_call(function, arguments, names)
        case _:
            raise ExpressionError(f"metric math {ast.unparse(node)!r} is not emulated")


def _check_call(function: str, arguments: list[ast.expr], names: set[str]) -> None:
    if function not in _ARGUMENTS:
        raise ExpressionError(f"metric math function {function} is not emulated; known: {', '.join(_ARGUMENTS)}")
    least, most = _ARGUMENTS[function]
    if not least <= len(arguments) <= most:
        raise ExpressionError(f"metric math function {function} takes {most} arguments; got {len(arguments)}")
    if function in _REDUCTIONS and isinstance(arguments[0], ast.List):
        arguments = arguments[0].elts
    for argument in arguments:
        if not (function == "FILL" and isinstance(argument, ast.Name) and argument.id in _FILLS):
            _check(argument, names)


@dataclass(frozen=True, slots=True)
class _Evaluation:
    series: Mapping[str, Series]
    period_s: float
    length: int

    def of(self, node: ast.expr) -> Value:
        """The value of a checked expression."""
        match node:
            case ast.Constant(value=int() | float() as number):
                return float(number)
            case ast.Name(id=name):
                return self.series[name]
            case ast.BinOp(left=left, op=op, right=right):
                return self._each(_BINARY[type(op)], left, right)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._each(operator.neg, operand)
            case ast.UnaryOp(operand=operand):
                return self._each(lambda value: float(not value), operand)
            case ast.BoolOp(op=op, values=values):
                whole = all if isinstance(op, ast.And) else any
                return self._each(lambda *given: float(whole(given)), *values)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                compare = _COMPARISONS[type(op)]
                return self._each(lambda a, b: float(compare(a, b)), left, right)
            case ast.Call(func=ast.Name(id=function), args=arguments):
                return self._call(function, arguments)
        raise AssertionError(f"{ast.dump(node)} passed the check")

    def _call(self, function: str, arguments: list[ast.expr]) -> Value:
        if function in _ROUNDINGS:
            return self._each(_ROUNDINGS[function], arguments[0])
        if function == "PERIOD":
            return float(self.period_s)
        if function == "FILL":
            return self._fill(self.grid(self.of(arguments[0])), arguments[1])
        if function == "IF":
            return self._if(*arguments)
        return self._reduced(_REDUCTIONS[function], arguments[0])

    def _each(self, function: Callable[..., float], *nodes: ast.expr) -> Value:
        values = [self.of(node) for node in nodes]
        if numbers := [value for value in values if not isinstance(value, tuple)]:
            if any(map(math.isnan, numbers)):
                return math.nan
            if len(numbers) == len(values):
                result = _or_none(function, numbers)
                return math.nan if result is None else result
        rows = zip(*(self.grid(value) for value in values), strict=True)
        return tuple(None if None in row else _or_none(function, row) for row in rows)

    def grid(self, value: Value) -> Series:
        """A number is the same in every period; none (NaN inside an evaluation) is missing in every one."""
        if isinstance(value, tuple):
            return value
        return (None if math.isnan(value) else value,) * self.length

    def _if(self, condition: ast.expr, then: ast.expr, otherwise: ast.expr | None = None) -> Value:
        nothing: Series = (None,) * self.length
        chosen = self.grid(self.of(then))
        other = nothing if otherwise is None else self.grid(self.of(otherwise))
        rows = zip(self.grid(self.of(condition)), chosen, other, strict=True)
        return tuple(None if when is None else (a if when else b) for when, a, b in rows)

    def _fill(self, series: Series, how: ast.expr) -> Series:
        if isinstance(how, ast.Name) and how.id in _FILLS:
            return _repeated(series) if how.id == "REPEAT" else _interpolated(series)
        filler = self.grid(self.of(how))
        return tuple(b if a is None else a for a, b in zip(series, filler, strict=True))

    def _reduced(self, function: Callable[[Sequence[float]], float], node: ast.expr) -> Value:
        if not isinstance(node, ast.List):
            there = [v for v in self.grid(self.of(node)) if v is not None]
            return function(there) if there else math.nan
        rows = zip(*(self.grid(self.of(each)) for each in node.elts), strict=True)
        columns = [[v for v in row if v is not None] for row in rows]
        return tuple(function(column) if column else None for column in columns)


def _or_none(function: Callable[..., float], values: Sequence[object]) -> float | None:
    try:
        result = function(*values)
    except (ZeroDivisionError, OverflowError):
        return None
    return float(result) if isinstance(result, int | float) and math.isfinite(result) else None


def _repeated(series: Series) -> Series:
    out: list[float | None] = []
    for value in series:
        out.append(value if value is not None or not out else out[-1])
    return tuple(out)


def _interpolated(series: Series) -> Series:
    known = [(i, v) for i, v in enumerate(series) if v is not None]
    out = list(_repeated(series))
    for (i, a), (j, b) in itertools.pairwise(known):
        for k in range(i + 1, j):
            out[k] = a + (b - a) * (k - i) / (j - i)
    return tuple(out)
