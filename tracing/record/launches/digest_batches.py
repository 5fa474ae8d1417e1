"""What the compiled forms of the recorder leave to Python when they take digests on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracing.digest.gpu import Batch, StreamDigests
from tracing.digest.kernel_launches import DriverCall
from tracing.digest.tables import Call
from tracing.launch import hooks
from tracing.launch.hidden_computation import HiddenComputation
from tracing.upstream.torch.cuda_graphs import is_capturing


class DigestBatches:
    """Begins and ends batches of digests; see LaunchDigests in tracing/native/digests.h."""

    capturing: Callable[[], bool] = staticmethod(is_capturing)

    def next_batch(self, digests: StreamDigests) -> None:
        """Begin another batch of digests."""
        with hooks.hidden(), HiddenComputation():
            digests.next_batch()

    def merged(
        self, digests: StreamDigests, after: Sequence[Call], before: Sequence[Call]
    ) -> list[DriverCall]:
        """The digests after a launch and those before the next one together."""
        with hooks.hidden(), HiddenComputation():
            return digests.merged(after, before)

    def leave(self, digests: StreamDigests, batch: Batch) -> None:
        """All launches of a full batch have ended."""
        with hooks.hidden(), HiddenComputation():
            digests.leave(batch)
