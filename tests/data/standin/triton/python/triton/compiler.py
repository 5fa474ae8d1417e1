from typing import NamedTuple


class ASTSource(NamedTuple):
    fn: object
    signature: dict
    constexprs: dict
