/** What a response said beside its message. */
export interface ErrorDetails {
  status: number;
  code?: string | undefined;
  retryAfter?: number | undefined;
  rayId?: string | undefined;
  documentation?: string | undefined;
  metadata?: Record<string, unknown> | undefined;
  cause?: unknown;
}

/** A request that was refused, or that got no response in time. */
export class MusterError extends Error {
  override readonly name = "MusterError";
  /** The HTTP status; 0 where no response came. */
  readonly status: number;
  /** The stable code of the error; undefined where the gateway responded, or nobody. */
  readonly code: string | undefined;
  /** Seconds after which a retry makes sense. */
  readonly retryAfter: number | undefined;
  /** Identifies the request in the service's log. */
  readonly rayId: string | undefined;
  /** A page that explains the code. */
  readonly documentation: string | undefined;
  /** What the code promises, such as `max`. */
  readonly metadata: Record<string, unknown>;

  constructor(message: string, { status, code, retryAfter, rayId, documentation, metadata, cause }: ErrorDetails) {
    super(message, { cause });
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter;
    this.rayId = rayId;
    this.documentation = documentation;
    this.metadata = metadata ?? {};
  }

  /** Whether the same request may succeed later: there was no response, or it was 408, 429 or 5xx. */
  get isTransient(): boolean {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}
