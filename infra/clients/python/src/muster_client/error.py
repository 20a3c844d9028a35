"""What a request fails with."""

from collections.abc import Mapping
from typing import Any


class MusterError(Exception):
    """A request that was refused, or that got no response in time."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        code: str | None = None,
        retry_after: int | None = None,
        ray_id: str | None = None,
        documentation: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message if code is None else f"{code}: {message}")
        #: The HTTP status; 0 where no response came.
        self.status = status
        #: The stable code of the error; `None` where the gateway responded, or nobody.
        self.code = code
        #: Seconds after which a retry makes sense.
        self.retry_after = retry_after
        #: Identifies the request in the service's log.
        self.ray_id = ray_id
        #: A page that explains the code.
        self.documentation = documentation
        #: What the code promises, such as `max`.
        self.metadata = metadata or {}

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed later: there was no response, or it was 408, 429 or 5xx."""
        return self.status in (0, 408, 429) or self.status >= 500
