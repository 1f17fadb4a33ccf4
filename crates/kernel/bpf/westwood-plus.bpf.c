/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * TCP Westwood+: crates/cc/src/alg/westwood_plus.rs with the flavour `linux`, in fixed point. The estimate also sets the window after
 * an ECN echo, as in Linux.
 */
#include "frame.h"
#include "path.h"

#define NAME skyhaul_wwplus

/* Shortest interval of a sample, microseconds. */
#define SHORTEST 50000

struct state {
	struct frame frame;
	struct credit credit;
	/* Rate after one filter and after two. */
	u64 once;
	u64 twice;
	/* Start of the current interval, microseconds. */
	u64 since;
	/* Segments acknowledged in it. */
	u32 acked;
	/* Last and minimum RTT, microseconds; 0 before the first one. */
	u32 rtt;
	u32 rtt_min;
	/* There was a sample. */
	u8 started;
	/* The next RTT replaces the minimum. */
	u8 reset_rtt_min;
};

always_inline void control_init(struct sock *sk, struct state *s)
{
	struct tcp_sock *tp = tcp_sk(sk);

	*s = (struct state){ .reset_rtt_min = 1, .since = tp->tcp_mstamp };
	s->credit.delivered = tp->delivered;
}

/* The window that fits the path, Q32 segments. */
always_inline u64 fits(const struct state *s)
{
	return max(carried_in(s->twice, s->rtt_min), 2 * ONE);
}

always_inline void control_acked(struct sock *sk, struct state *s, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 segments = credited(&s->credit, tp, sample->pkts_acked, 0);
	u64 elapsed = tp->tcp_mstamp - s->since;

	if (sample->rtt_us > 0) {
		s->rtt = sample->rtt_us;
		s->rtt_min = s->reset_rtt_min ? s->rtt : min(s->rtt, s->rtt_min);
		s->reset_rtt_min = 0;
	}
	if (s->rtt && elapsed > max(s->rtt, SHORTEST)) {
		u64 rate = rate_of(s->acked, elapsed);

		s->once = s->started ? (7 * s->once + rate) / 8 : rate;
		s->twice = s->started ? (7 * s->twice + s->once) / 8 : rate;
		s->started = 1;
		s->acked = 0;
		s->since = tp->tcp_mstamp;
	}
	/* The acknowledgement that closes an interval belongs to the next one. */
	s->acked += segments;
}

always_inline void control_grow(struct sock *sk, struct state *s, u32 acked)
{
	reno_growth(tcp_sk(sk), &s->frame, acked);
}

always_inline u32 control_ssthresh(struct sock *sk, struct state *s)
{
	return reduce_to_half(tcp_sk(sk), &s->frame);
}

always_inline void control_event(struct sock *sk, struct state *s, u32 event)
{
	struct frame *f = &s->frame;

	if (event == CA_EVENT_COMPLETE_CWR)
		f->threshold = f->reduced = fits(s);
	else if (event == CA_EVENT_LOSS)
		f->threshold = fits(s);
	reduction_event(tcp_sk(sk), f, event);
	if (event == CA_EVENT_LOSS) {
		s->credit.open = 0;
		s->reset_rtt_min = 1;
	}
}

#include "control.h"
