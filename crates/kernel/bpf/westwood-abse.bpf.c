/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * TCP Westwood ABSE: crates/cc/src/alg/westwood_abse.rs with its default options, in fixed point. Arrivals are kept for one RTT, at
 * most 512 of them; of more, the newest are merged.
 */
#include "frame.h"
#include "path.h"

#define NAME skyhaul_abse
#define LARGE_STATE

/* A power of two, and its logarithm. */
#define ARRIVALS 512
#define ARRIVALS_LOG 9
/* Newest jumps over which the maximum is taken. */
#define JUMPS 10
/* RTTs that the largest jump adds to the filter's memory. */
#define N 10
/* Jumps have this many bits behind the point more than rates; up to TINY_JUMP even these are too few for a quotient. */
#define JUMP_BITS 14
#define TINY_JUMP (1 << 12)
/* If all jumps in memory only decay, the newest is 0.6^9 of the greatest. */
#define DECAYED Q32(10077696, 1000000000)
/* Bits behind the point of an interval in microseconds. */
#define TIME_BITS 16

struct arrival {
	/* Time, microseconds. */
	u32 at;
	/* All segments that have arrived until then. */
	u32 sum;
};

struct state {
	struct frame frame;
	struct credit credit;
	/* A ring: entries from `tail` to `head`, which count on beyond its size. */
	struct arrival arrivals[ARRIVALS];
	u32 head;
	u32 tail;
	/* Segments that have arrived, all, and until the entry before `tail`. */
	u32 total;
	u32 gone;
	/* Segments acknowledged at the current instant. */
	u32 waiting;
	u32 next_jump;
	/* Time of the last arrival, microseconds; 0 before the first acknowledgement. */
	u64 last;
	/* Filtered throughput, last sample, jumps with JUMP_BITS, estimate: rates. */
	u64 throughput;
	u64 sample;
	u64 jump;
	u64 jumps[JUMPS];
	u64 estimate;
};

/* A mean with weight 0.6 for the previous value. */
always_inline u64 mix(u64 old, u64 new)
{
	return (3 * old + 2 * new) / 5;
}

/* jump / greatest as a Q32. */
always_inline u64 part_of(u64 jump, u64 greatest)
{
	/* 44 bits are enough of large ones. */
	u32 shift = greatest >> 44 ? JUMP_BITS : 0;

	return quotient(jump >> shift, greatest >> shift);
}

/* The first entry from `tail` on that is younger than `age`, microseconds with TIME_BITS; the newest entry always is. */
always_inline u32 first_within(const struct state *s, u64 now, u64 age)
{
	u32 from = s->tail, count = s->head - s->tail;

#pragma clang loop unroll(full)
	for (int i = 0; i <= ARRIVALS_LOG; i++) {
		u32 half = count / 2, middle = from + half;
		u32 old = (u32)now - s->arrivals[middle % ARRIVALS].at;
		/* 1 if there are entries left and the one in the middle is too old. */
		u32 beyond = opaque((1 - ((((u64)old << TIME_BITS) - age) >> 63)) & (((u64)count + ~0U) >> 32));

		from += (half + 1) * beyond;
		count = half + beyond * (count - 2 * half - 1);
	}
	return from;
}

/* Segments that arrived before entry `from`. */
always_inline u32 before(const struct state *s, u32 from)
{
	return from == s->tail ? s->gone : s->arrivals[(from - 1) % ARRIVALS].sum;
}

always_inline void control_init(struct sock *sk, struct state *s)
{
	s->frame = (struct frame){};
	s->credit = (struct credit){ .delivered = tcp_sk(sk)->delivered };
	s->head = s->tail = s->total = s->gone = s->waiting = s->next_jump = 0;
	s->last = s->throughput = s->sample = s->jump = s->estimate = 0;
#pragma clang loop unroll(full)
	for (int i = 0; i < JUMPS; i++)
		s->jumps[i] = 0;
}

always_inline void note(struct state *s, u64 now, u32 segments, u32 rtt)
{
	s->total += segments;
	/* A full ring: this arrival joins the newest one. */
	if (s->head - s->tail == ARRIVALS)
		s->head--;
	struct arrival *new = &s->arrivals[s->head % ARRIVALS];

	new->at = now;
	new->sum = s->total;
	s->head++;
	u32 tail = first_within(s, now, (u64)rtt << TIME_BITS);

	s->gone = before(s, tail);
	s->tail = tail;
}

always_inline void control_acked(struct sock *sk, struct state *s, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 now = tp->tcp_mstamp, last = s->last;
	u32 rtt = smoothed_rtt(tp), segments = credited(&s->credit, tp, sample->pkts_acked, 1);

	if (!segments)
		return;
	if (!last) {
		s->last = now;
		return;
	}
	s->waiting += segments;
	if (!rtt || now <= last)
		return;
	s->last = now;
	segments = s->waiting;
	s->waiting = 0;
	note(s, now, segments, rtt);

	/* The sampling interval. */
	u64 gap = (now - last) << TIME_BITS, interval = gap;
	/* While a loss is repaired, the window that the repair leads to. */
	u64 cwnd = s->frame.reducing ? s->frame.reduced : cwnd_of(tp, &s->frame);
	u32 shortest = min_rtt(tp);

	shortest = shortest ? shortest : rtt;
	s->throughput = mix(s->throughput, rate_of(s->total - s->gone, rtt));
	if (carried_in(s->throughput, rtt) <= cwnd) {
		u64 queued = less(cwnd, carried_in(s->throughput, shortest));

		interval = max(mul((u64)rtt << TIME_BITS, ratio(queued, cwnd)), gap);
	}
	u32 newest = interval <= gap ? segments : s->total - before(s, first_within(s, now, interval));
	u64 many = min(newest, 1 << 19) * 1000000 << RATE_BITS;
	u64 found = ((many / interval) << TIME_BITS) + ((many % interval) << TIME_BITS) / interval;

	/* The filter. */
	s->jump = mix(s->jump, (found > s->sample ? found - s->sample : s->sample - found) << JUMP_BITS);
	s->sample = found;
	if (s->next_jump < JUMPS)
		s->jumps[s->next_jump] = s->jump;
	s->next_jump = s->next_jump + 1 < JUMPS ? s->next_jump + 1 : 0;
	u64 greatest = 0;

#pragma clang loop unroll(full)
	for (int i = 0; i < JUMPS; i++)
		greatest = max(greatest, s->jumps[i]);
	u64 span = (u64)rtt << (TIME_BITS + 1);

	span += mul(N * span, greatest > TINY_JUMP ? part_of(s->jump, greatest) : DECAYED);
	u64 keep = quotient(less(span, gap), span + gap);

	s->estimate = mul(s->estimate, keep) + mul(found, ONE - keep);
}

always_inline void control_grow(struct sock *sk, struct state *s, u32 acked)
{
	reno_growth(tcp_sk(sk), &s->frame, acked);
}

always_inline u32 control_ssthresh(struct sock *sk, struct state *s)
{
	struct tcp_sock *tp = tcp_sk(sk);

	return reduce_to_fit(tp, &s->frame, carried_in(s->estimate, min_rtt(tp)));
}

always_inline void control_event(struct sock *sk, struct state *s, u32 event)
{
	reduction_event(tcp_sk(sk), &s->frame, event);
	if (event == CA_EVENT_LOSS)
		s->credit.open = 0;
}

#include "control.h"
