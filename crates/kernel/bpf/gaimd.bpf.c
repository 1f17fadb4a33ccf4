/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * GAIMD(0.3125, 7/8): crates/cc/src/alg/gaimd.rs with its default options, in fixed point.
 */
#include "frame.h"

#define NAME skyhaul_gaimd

/* Increase in segments per RTT, and what a loss leaves: alpha = 4 (1 - beta^2) / 3. */
#define ALPHA Q32(5, 16)
#define BETA Q32(7, 8)

struct state {
	struct frame frame;
};

always_inline void control_init(struct sock *sk, struct state *s)
{
	*s = (struct state){};
}

always_inline void control_acked(struct sock *sk, struct state *s, const struct ack_sample *sample)
{
}

always_inline void control_grow(struct sock *sk, struct state *s, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct frame *f = &s->frame;

	if (!may_grow(tp, f) || grow_in_slow_start(tp, f, acked))
		return;
	u64 cwnd = cwnd_of(tp, f);

	set_cwnd(tp, f, cwnd + mul(ALPHA, share_of(cwnd, acked)));
}

always_inline u32 control_ssthresh(struct sock *sk, struct state *s)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 kept = max(mul(cwnd_of(tp, &s->frame), BETA), 2 * ONE);

	return reduce(tp, &s->frame, kept, kept);
}

always_inline void control_event(struct sock *sk, struct state *s, u32 event)
{
	reduction_event(tcp_sk(sk), &s->frame, event);
}

#include "control.h"
