"""Controls for the tests, in a module that workers can import."""

import skyhaul as sh


class Reno(sh.Control):
    """Growth and halving of RFC 5681 with byte counting (RFC 3465), the simple way."""

    def increase(self, ack):
        return min(ack.acked, self.cwnd) / self.cwnd

    def reduction(self, loss):
        return 0.5


class Written(sh.Control):
    """The same growth and halving with every event written out, without the base class."""

    def on_start(self, start):
        if start.kind == "established":
            self.cwnd = (
                1.0 if start.syn_lost else float(min(10 * self.smss, max(2 * self.smss, 14600)) // self.smss)
            )
            self.ssthresh = float("inf")
        else:
            self.cwnd = min(self.cwnd, float(min(10 * self.smss, max(2 * self.smss, 14600)) // self.smss))

    def on_ack(self, ack):
        if ack.kind not in ("new", "full") or self.phase == "recovery" or not ack.cwnd_limited:
            return
        if self.cwnd < self.ssthresh:
            most = 1.0 if self.after_timeout else 2.0
            self.cwnd += min(ack.acked, most, max(self.ssthresh - self.cwnd, 1.0))
        else:
            self.cwnd += min(ack.acked, self.cwnd) / self.cwnd

    def _half(self):
        # FlightSize includes selectively acknowledged data: a reduction must not enlarge the window.
        repairing = self.phase != "loss" and not self.after_timeout and self.pipe < self.in_flight
        most = self.cwnd if repairing else float("inf")
        return max(min(self.in_flight * 0.5, most), 2.0)

    def on_congestion(self, loss):
        self.before = (self.cwnd, self.ssthresh)
        self.ssthresh = self._half()
        self.cwnd = self.ssthresh

    def on_recovered(self):
        self.cwnd = self.ssthresh

    def on_timeout(self, backoff):
        if backoff <= 1:
            self.before = (self.cwnd, self.ssthresh)
            self.ssthresh = self._half()
        self.cwnd = 1.0

    def on_undo(self):
        self.cwnd = max(self.cwnd, self.before[0])
        self.ssthresh = max(self.ssthresh, self.before[1])


class Gentle(sh.Control):
    """Additive increase, multiplicative decrease with options."""

    def __init__(self, alpha=1.0, beta=0.5):
        self.alpha = alpha
        self.beta = beta

    def increase(self, ack):
        return self.alpha * min(ack.acked, self.cwnd) / self.cwnd

    def reduction(self, loss):
        return self.beta

    def telemetry(self):
        return {"alpha": self.alpha, "beta": self.beta}


class Fragile(sh.Control):
    """Raises an exception on the hundredth acknowledgement."""

    def __init__(self, when=100):
        self.left = when

    def on_ack(self, ack):
        super().on_ack(ack)
        self.left -= 1
        if self.left == 0:
            raise LookupError("a hundred were enough")
