/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * TCP Hybla: crates/cc/src/alg/hybla.rs with its default options, in fixed point. An RTT above 10 s counts as 10 s.
 */
#include "frame.h"
#include "path.h"

#define NAME skyhaul_hybla
#define WANTS_STATE

/* Reference RTT and greatest RTT, microseconds. */
#define RTT0 25000
#define MOST_RTT 10000000
/* Greatest exponent of slow start, Q32. */
#define MOST_RHO (16 * ONE)
/* Segments that one acknowledgement counts for at most: more would not fit in the arithmetic. */
#define MOST_ACKED 4096

struct state {
	struct frame frame;
	/* Minimum smoothed RTT, microseconds; 0 before the first one. */
	u32 least;
	/* The same in multiples of the reference RTT, at least 1: Q32. */
	u64 rho;
	/* A timeout is being repaired. */
	u8 loss;
};

always_inline void learn(struct state *s, u32 rtt)
{
	rtt = min(rtt, MOST_RTT);
	if (rtt && (!s->least || rtt < s->least)) {
		s->least = rtt;
		s->rho = max(quotient(rtt, RTT0), ONE);
	}
}

/* What an acknowledged segment adds in slow start: 2^rho - 1. */
always_inline u64 slow_start_step(u64 rho)
{
	rho = min(rho, MOST_RHO);
	u64 whole = (rho + ONE - 1) >> 32;

	return (half_to_the((whole << 32) - rho) << whole) - ONE;
}

always_inline void control_init(struct sock *sk, struct state *s)
{
	struct tcp_sock *tp = tcp_sk(sk);

	*s = (struct state){ .rho = ONE };
	learn(s, smoothed_rtt(tp));
	/* The window starts at rho, or at one segment if the SYN was lost; a connection in progress keeps its own. */
	if (s->least && tp->snd_cwnd > 1 && tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH && !tp->delivered)
		set_cwnd(tp, &s->frame, s->rho);
}

always_inline void control_acked(struct sock *sk, struct state *s, const struct ack_sample *sample)
{
	learn(s, smoothed_rtt(tcp_sk(sk)));
}

always_inline void control_grow(struct sock *sk, struct state *s, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct frame *f = &s->frame;

	if (!may_grow(tp, f))
		return;
	acked = min(acked, MOST_ACKED);
	/* While a timeout is repaired an acknowledgement may cover data that arrived long before. */
	if (s->loss) {
		grow_like_reno(tp, f, acked);
		return;
	}
	u64 cwnd = cwnd_of(tp, f), ssthresh = ssthresh_of(tp, f);

	if (cwnd < ssthresh) {
		u64 n = f->after_timeout ? min(acked, 1) : acked;

		set_cwnd(tp, f, min(cwnd + n * slow_start_step(s->rho), ssthresh));
	} else {
		/* rho^2 segments for each window acknowledged. */
		u64 square = (s->rho >> 16) * (s->rho >> 16);
		u64 step = ((u64)acked << 32) >= cwnd ? square : acked * ratio(square, cwnd);

		set_cwnd(tp, f, cwnd + step);
	}
}

always_inline u32 control_ssthresh(struct sock *sk, struct state *s)
{
	return reduce_to_half(tcp_sk(sk), &s->frame);
}

always_inline void control_event(struct sock *sk, struct state *s, u32 event)
{
	reduction_event(tcp_sk(sk), &s->frame, event);
}

always_inline void control_state(struct sock *sk, struct state *s, u32 to)
{
	s->loss = to == TCP_CA_Loss;
}

#include "control.h"
