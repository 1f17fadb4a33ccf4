/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * TCP TIBET: crates/cc/src/alg/tibet.rs with its default options (acknowledgements are measured), in fixed point.
 */
#include "frame.h"
#include "path.h"

#define NAME skyhaul_tibet

/* Segments that one acknowledgement counts for at most: more would not fit in the arithmetic. */
#define MOST_LENGTH 4000
/* Longest interval that the filter follows, microseconds. */
#define MOST_INTERVAL 100000000ULL

struct state {
	struct frame frame;
	struct credit credit;
	/* Mean length, Q32 segments; 0 before the first one. */
	u64 length;
	/* Mean interval, microseconds with 24 bits behind the point; 0 before the first one above zero. */
	u64 interval;
	/* Time of the last acknowledgement, microseconds; 0 before the first one. */
	u64 last;
	/* The estimate, a rate. */
	u64 bwe;
};

/* The filter of lengths and intervals has a pole of 0.99. */
always_inline u64 mix(u64 old, u64 new)
{
	return (99 * old + new) / 100;
}

always_inline void control_init(struct sock *sk, struct state *s)
{
	*s = (struct state){};
	s->credit.delivered = tcp_sk(sk)->delivered;
}

always_inline void control_acked(struct sock *sk, struct state *s, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 now = tp->tcp_mstamp, last = s->last;
	u32 segments = min(credited(&s->credit, tp, sample->pkts_acked, 0), MOST_LENGTH);

	if (!segments)
		return;
	s->last = now;
	if (!last)
		return;
	u64 elapsed = min(now - last, MOST_INTERVAL), length = (u64)segments << 32;

	s->length = s->length ? mix(s->length, length) : length;
	s->interval = s->interval ? mix(s->interval, elapsed << 24) : elapsed << 24;
	if (s->interval) {
		u64 keep = decay_over(elapsed);
		/* Q32 segments over microseconds with 12 bits behind the point: a rate. */
		u64 sample_rate = s->length * 1000000 / max(s->interval >> (24 - 32 + RATE_BITS), 1);

		s->bwe = mul(s->bwe, keep) + mul(sample_rate, ONE - keep);
	}
}

always_inline void control_grow(struct sock *sk, struct state *s, u32 acked)
{
	reno_growth(tcp_sk(sk), &s->frame, acked);
}

always_inline u32 control_ssthresh(struct sock *sk, struct state *s)
{
	struct tcp_sock *tp = tcp_sk(sk);

	return reduce_to_fit(tp, &s->frame, carried_in(s->bwe, min_rtt(tp)));
}

always_inline void control_event(struct sock *sk, struct state *s, u32 event)
{
	reduction_event(tcp_sk(sk), &s->frame, event);
	if (event == CA_EVENT_LOSS)
		s->credit.open = 0;
}

#include "control.h"
