"""The options of `tracing check`: constraints on graphs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from tracing.cli.options.size import size
from tracing.environment.mock_settings import mock_settings
from tracing.errors import Problem, page

if TYPE_CHECKING:
    from tracing.backend.constraints import Constraint


class LayoutOption(str, Enum):
    """Memory formats."""

    contiguous = "contiguous"
    channels_last = "channels_last"
    channels_last_3d = "channels_last_3d"


@dataclass(frozen=True)
class CheckOptions:
    """Constraints. Without any of them, the settings of `mock_backend` apply."""

    alignment: Annotated[
        int | None, typer.Option(min=1, help="Every size must be a multiple of this many elements.")
    ] = None
    dimension: Annotated[
        list[int] | None, typer.Option(help="With --alignment: only these dimensions; -1: the last.")
    ] = None
    dtype: Annotated[list[str] | None, typer.Option(help="An allowed dtype. Repeat for more.")] = None
    max_memory: Annotated[
        int | None, typer.Option(parser=size, metavar="SIZE", help="Maximum size of one tensor: 2GB.")
    ] = None
    peak_memory: Annotated[
        int | None,
        typer.Option(parser=size, metavar="SIZE", help="Maximum size of all tensors that are alive at once."),
    ] = None
    layout: Annotated[LayoutOption | None, typer.Option(help="Required memory format.")] = None
    views: Annotated[bool, typer.Option("--views", help="With --layout: check views, too.")] = False
    unsupported: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OPERATOR", help="An unsupported operator: linalg.lu, nn.Conv2d, aten.add. Repeatable."
        ),
    ] = None
    accelerator: Annotated[
        str | None, typer.Option(metavar="NAME", help="The constraints of a registered accelerator.")
    ] = None

    def __post_init__(self) -> None:
        """Raise Problem for an option that has no effect by itself."""
        for option, needed, no_effect in (
            ("--dimension", "--alignment", self.dimension and self.alignment is None),
            ("--views", "--layout", self.views and self.layout is None),
        ):
            if no_effect:
                raise Problem(f"{option} is given without {needed}", f"it restricts {needed}: give both")

    @property
    def given(self) -> bool:
        """True if an option is given."""
        return self != CheckOptions()

    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints; raises Problem for a name that torch does not have. Imports torch."""
        from tracing.backend.adapter import accelerator
        from tracing.backend.mock import default_constraints

        try:
            chosen = self.own()
        except ValueError as error:
            names = f"{page('docs/backend.md')} lists how operators and dtypes are named"
            raise Problem(str(error), names) from None
        if self.accelerator is not None:
            chosen = (*accelerator(self.accelerator).capabilities().constraints(), *chosen)
        return chosen or default_constraints(mock_settings())

    def own(self) -> tuple[Constraint, ...]:
        """The constraints that these options spell, without those of an accelerator; raises ValueError."""
        from tracing.backend import constraints as kinds

        chosen: list[Constraint] = []
        if self.alignment is not None:
            dimensions = tuple(self.dimension) if self.dimension else None
            chosen.append(kinds.ShapeConstraint(self.alignment, dimensions))
        if self.dtype:
            chosen.append(kinds.DtypeConstraint(self.dtype))
        if self.max_memory is not None:
            chosen.append(kinds.MemoryConstraint(self.max_memory))
        if self.peak_memory is not None:
            chosen.append(kinds.PeakMemoryConstraint(self.peak_memory))
        if self.layout is not None:
            chosen.append(kinds.LayoutConstraint(self.layout.value, views=self.views))
        if self.unsupported:
            chosen.append(kinds.UnsupportedOpsConstraint(self.unsupported))
        return tuple(chosen)
