/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The increase of TCP-Real: crates/cc/src/alg/tcp_real.rs with its default options, in fixed point, but for one thing. A receiver
 * that measures the rate of waves and reports it needs a TCP option, which a control cannot send. Here the sender measures the
 * rate at which the acknowledgements of a wave report its arrival, and so the path of the acknowledgements is measured as well.
 */
#include "frame.h"
#include "path.h"

#define NAME skyhaul_real
#define WANTS_STATE

struct state {
	struct frame frame;
	/* Rate of the newest wave, and of the one evaluated last, bit/s; 0 without one. */
	u64 newest;
	u64 judged;
	/* Begin of the wave in progress, microseconds, and what had been delivered then, segments. */
	u64 since;
	u32 delivered;
	/* A wave has not been evaluated. */
	u8 pending;
	/* A timeout is being repaired. */
	u8 loss;
};

always_inline void control_init(struct sock *sk, struct state *s)
{
	struct tcp_sock *tp = tcp_sk(sk);

	*s = (struct state){ .since = tp->tcp_mstamp, .delivered = tp->delivered };
}

always_inline void control_acked(struct sock *sk, struct state *s, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!round_over(tp, sample, s->delivered))
		return;
	u64 bits = (u64)(tp->delivered - s->delivered) * tp->mss_cache * 8;

	s->newest = min(bits, 1ULL << 40) * 1000000 / max(tp->tcp_mstamp - s->since, 1);
	s->since = tp->tcp_mstamp;
	s->delivered = tp->delivered;
	s->pending = 1;
}

/* Evaluates a wave: grows by a segment if the rate holds, keeps the window if it falls by an eighth or less, else reduces it. */
always_inline void judge(struct tcp_sock *tp, struct state *s)
{
	struct frame *f = &s->frame;
	u64 new = s->newest, old = s->judged, cwnd = cwnd_of(tp, f);

	s->judged = new;
	if (!old)
		return;
	if (new >= old) {
		set_cwnd(tp, f, cwnd + ONE);
	} else if (8 * new < 7 * old) {
		u64 to = min(max(cwnd - cwnd / 8, 2 * ONE), cwnd);

		set_cwnd(tp, f, to);
		set_ssthresh(tp, f, to);
	}
}

always_inline void control_grow(struct sock *sk, struct state *s, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct frame *f = &s->frame;

	if (!may_grow(tp, f))
		return;
	if (s->newest && !s->loss && !slow_start(tp, f)) {
		if (s->pending) {
			s->pending = 0;
			judge(tp, s);
		}
	} else {
		grow_like_reno(tp, f, acked);
	}
}

always_inline u32 control_ssthresh(struct sock *sk, struct state *s)
{
	return reduce_to_half(tcp_sk(sk), &s->frame);
}

always_inline void control_event(struct sock *sk, struct state *s, u32 event)
{
	reduction_event(tcp_sk(sk), &s->frame, event);
	if (event == CA_EVENT_LOSS)
		s->newest = s->judged = 0;
}

always_inline void control_state(struct sock *sk, struct state *s, u32 to)
{
	s->loss = to == TCP_CA_Loss;
}

#include "control.h"
