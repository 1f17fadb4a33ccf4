/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hark without probes: crates/cc/src/alg/hark with `probes = false`, in fixed point. The parts and the constants have the names
 * of its files, which give the reasons. Probes and pages need segments of low priority, which a control cannot send. Detection
 * and repair of losses are the kernel's (RACK-TLP, RFC 8985): it has no early retransmission at the first duplicate
 * acknowledgement, and does not watch the head of the window.
 *
 * The kernel measures an RTT even where one acknowledgement covers many segments, so such samples count as well. A round in which
 * neither window nor application used what was allowed does not grow (RFC 7661).
 */
#include "fixed.h"
#include "path.h"

#define NAME skyhaul_hark
#define LARGE_STATE
#define WHOLE_WINDOW
#define WANTS_STATE

/* hark.rs */
#define PACE Q32(103, 100)
#define PACE_STARTING Q32(130, 100)
#define SLOW_START_QUEUE 3
/* start.rs */
#define FIRST (10 * ONE)
/* delay.rs */
#define OWN_ROOT Q32(24, 100)
#define OWN Q32(14, 10)
#define OWN_SHARE Q32(1, 100)
#define FULL Q32(8, 10)
#define FORGET Q32(995, 1000)
#define NOMINAL_RTT 550000
/* losses.rs */
#define COLLAPSE Q32(1, 4)
#define CUT Q32(3, 2)
#define MOST_LEFT Q32(999, 1000)
/* rival.rs */
#define PATIENCE 5
#define RESUME 3
#define KEPT_FIRM Q32(7, 10)
#define LEAST_FIRM (2 * ONE)
/* window.rs */
#define LEAST ONE
#define OPENING_MOST (ONE / 2)
#define BLIND_MOST Q32(3, 100)
#define FAR_MOST Q32(1, 10)
#define KNEE_LEFT Q32(9, 10)
/* samples.rs */
#define KEPT 64
#define QUARTILE 8
#define FEW 3

#define NONE ~0U
/* Bits behind the point of a queueing delay in microseconds. */
#define TIME_BITS 16

struct state {
	/* Windows in Q32 segments: in use, quiet, quiet a round ago, knee, step; share of the distance to the target. */
	u64 cwnd;
	u64 quiet;
	u64 last;
	u64 knee;
	u64 step;
	u64 opening;
	/* The firm window, what the path carried in the last round, and the recent maximum of it. */
	u64 firm;
	u64 carried;
	u64 most;
	/* Loss rates, Q32: recent, and with an empty queue. */
	u64 recent;
	u64 innocent;
	/* Longest queueing delay, microseconds with TIME_BITS. */
	u64 longest;
	/* Time of the last acknowledgement, microseconds. */
	u64 last_ack;
	/* Queueing delay of the last round, microseconds. */
	u32 last_queue;
	/* RTTs in microseconds, NONE without any: minimum of the connection, quantiles of the last round with samples, handshake. */
	u32 base;
	u32 lower;
	u32 median;
	u32 peak;
	u32 handshake;
	/* Segments delivered and lost until the end of the last round. */
	u32 delivered;
	u32 lost;
	/* Segments delivered when the round began. */
	u32 round_start;
	/* Rounds in a row with far more own segments in the queue than the target, but for those in which the queue shrinks. */
	u32 crowded;
	/*
	 * The RTTs of this round: minimum, upper bounds included; how many are in `kept`, which takes one in `stride`; and how many
	 * were skipped since.
	 */
	u32 least;
	u32 count;
	u32 stride;
	u32 skipped;
	u8 starting;
	/* A rival is present. */
	u8 present;
	/* The retransmission timer expired, and nothing has been heard since. */
	u8 silent;
	/* The receiver's window or the send buffer limited the sender in this round. */
	u8 stalled;
	/* The window was in use in this round. */
	u8 used;
	u8 round_over;
	/* State of loss recovery. */
	u8 ca_state;
	u32 kept[KEPT];
};

/* What a completed round was. */
struct round {
	/* RTT and queueing delay, microseconds. */
	u32 rtt;
	u32 queue;
	u32 worst;
	/* Own segments in the queue, Q32, and the share of segments lost, Q32. */
	u64 own;
	u64 lost;
	u8 room;
};

always_inline u64 target(u64 window)
{
	return max(max(mul(root(window), OWN_ROOT), OWN), mul(window, OWN_SHARE));
}

/* The receiver's window, Q32 segments. */
always_inline u64 rwnd_of(const struct tcp_sock *tp)
{
	return (u64)(tp->snd_wnd / (u32)max(tp->mss_cache, 1)) << 32;
}

always_inline void pace(struct sock *sk, const struct state *s)
{
	u64 minimum = s->base != NONE ? s->base : s->median != NONE ? s->median : s->handshake;
	u64 gain = s->starting ? PACE_STARTING : PACE;
	/* Bytes with 12 bits behind the point. */
	u64 bytes = (mul(s->cwnd, gain) >> 20) * tcp_sk(sk)->mss_cache;

	/* Microseconds to seconds without overflow: windows up to 2^40 bytes. */
	sk->sk_pacing_rate = ((min(bytes, 1ULL << 52) / max(minimum, 1000)) * 1000000) >> 12;
}

always_inline void apply(struct sock *sk, struct state *s)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 limit = s->silent ? ONE : max(rwnd_of(tp), ONE);
	u64 window = max(s->quiet, s->present ? s->firm : 0);

	s->cwnd = min(max(window, LEAST), limit);
	tp->snd_cwnd = max(min(s->cwnd >> 32, min(tp->snd_cwnd_clamp, TCP_INFINITE_SSTHRESH)), 1);
	pace(sk, s);
}

always_inline void refute(struct state *s)
{
	s->present = 0;
	s->crowded = 0;
}

always_inline void leave_start(struct state *s)
{
	s->starting = 0;
	if (!s->present)
		refute(s);
	s->firm = max(min(max(s->firm, s->quiet), s->carried), FIRST);
}

always_inline void control_init(struct sock *sk, struct state *s)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 rtt = smoothed_rtt(tp);

	s->quiet = s->last = s->firm = s->carried = s->most = FIRST;
	s->knee = s->step = s->recent = s->innocent = s->longest = 0;
	s->opening = ONE / 8;
	/* A timeout before the first acknowledgement is silence, too. */
	s->last_ack = 0;
	s->last_queue = s->crowded = s->count = s->skipped = 0;
	s->base = s->lower = s->median = s->peak = s->least = NONE;
	s->handshake = rtt ? rtt : NOMINAL_RTT;
	s->delivered = s->round_start = tp->delivered;
	s->lost = tp->lost;
	s->stride = 1;
	s->starting = 1;
	s->present = s->silent = s->stalled = s->used = s->round_over = s->ca_state = 0;
	/* The kernel begins with one segment if it had to repeat the SYN; slow start follows. */
	if (tp->snd_cwnd == 1)
		s->quiet = LEAST;
	s->cwnd = (u64)tp->snd_cwnd << 32;
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	sk->sk_pacing_status = SK_PACING_NEEDED;
}

/* Adds an RTT to those of the round. */
always_inline void sample(struct state *s, u32 rtt)
{
	s->base = min(s->base, rtt);
	s->least = min(s->least, rtt);
	s->skipped++;
	if (s->skipped < s->stride)
		return;
	s->skipped = 0;
	if (s->count >= KEPT) {
#pragma clang loop unroll(full)
		for (int i = 0; i < KEPT / 2; i++)
			s->kept[i] = s->kept[2 * i];
		s->count = KEPT / 2;
		s->stride *= 2;
	}
	s->kept[s->count % KEPT] = rtt;
	s->count++;
}

/* Puts the smaller of two numbers first, without a branch. */
always_inline void in_order(u32 *a, u32 *b)
{
	s64 difference = (s64)*a - (s64)*b;
	s64 smaller = difference * (s64)opaque((u64)difference >> 63);

	*a = *b + smaller;
	*b = *b + difference - smaller;
}

/*
 * Sorts the first `count` samples, of which there is room for `n`, a power of two: by a network of comparisons (Batcher 1968), in which
 * what is compared does not depend on the samples.
 */
always_inline void sort(u32 *kept, u32 count, const u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (i >= count)
			kept[i] = NONE;
	for (u32 p = 1; p < n; p *= 2)
		for (u32 k = p; k >= 1; k /= 2)
			for (u32 j = k % p; j + k < n; j += 2 * k)
				for (u32 i = 0; i < k && i + j + k < n; i++)
					if ((i + j) / (2 * p) == (i + j + k) / (2 * p))
						in_order(&kept[(i + j) % n], &kept[(i + j + k) % n]);
}

/* The quantile of sorted samples. */
always_inline u32 quantile(const struct state *s, u32 percent)
{
	return s->count ? s->kept[percent * (s->count - 1) / 100 % KEPT] : s->least;
}

/* The RTTs of the completed round: bit 0 is set if there were any, bit 1 if there were enough for quantiles. The next begins. */
always_inline u32 take_samples(struct state *s)
{
	u32 found = 0;

	/* Rounds of a short path have few samples, and are many. */
	if (s->count > QUARTILE)
		sort(s->kept, s->count, KEPT);
	else if (s->count > 1)
		sort(s->kept, s->count, QUARTILE);
	if (s->least != NONE) {
		s->lower = s->count >= QUARTILE ? quantile(s, 25) : s->least;
		s->median = quantile(s, 50);
		s->peak = quantile(s, 90);
		found = 1 | (s->count >= FEW ? 2 : 0);
	}
	s->least = NONE;
	s->count = s->skipped = 0;
	s->stride = 1;
	return found;
}

/* Part `num` of `den`, as a Q32 of at most ONE. */
always_inline u64 part(u64 num, u64 den)
{
	return num >= den ? ONE : quotient(num, den);
}

/* Moves a mean towards a value by 1 / 2^bits of the distance. */
always_inline u64 towards(u64 mean, u64 value, u32 bits)
{
	return value >= mean ? mean + ((value - mean) >> bits) : mean - ((mean - value) >> bits);
}

always_inline int measure(const struct tcp_sock *tp, struct state *s, struct round *r)
{
	u32 found = take_samples(s);

	if (s->lower == NONE || s->base == NONE)
		return 0;
	r->rtt = s->lower;
	r->queue = less(s->lower, s->base);
	r->worst = found & 2 ? (u32)less(s->peak, s->base) : r->queue;
	s->longest = max(mul(s->longest, FORGET), found & 2 ? (u64)r->worst << TIME_BITS : 0);

	u32 got = tp->delivered - s->delivered, gone = tp->lost - s->lost;

	s->delivered = tp->delivered;
	s->lost = tp->lost;
	r->lost = part(gone, got + gone ? got + gone : 1);
	s->recent = towards(s->recent, r->lost, 2);
	s->carried = mul((u64)got << 32, part(s->base, r->rtt));
	s->most = max(s->carried, mul(s->most, MOST_LEFT));
	r->own = mul(s->quiet, part(r->queue, r->rtt));
	r->room = r->own < target(s->quiet) / 2;
	if (r->room)
		s->innocent = towards(s->innocent, r->lost, 3);
	return 1;
}

/* Judges the round: whether a rival that kept the queue standing has gone. */
always_inline int judge_rival(struct state *s, const struct round *r)
{
	u64 window = max(s->cwnd, s->firm), ours = mul(window, part(r->queue, r->rtt)), own = target(window);
	int shrinks = 10ULL * r->queue < 9ULL * s->last_queue;

	s->last_queue = r->queue;
	if (s->present) {
		if (ours >= own)
			return 0;
		refute(s);
		return 1;
	}
	s->crowded = ours > 2 * own + own / 2 ? s->crowded + !shrinks : 0;
	if (s->crowded >= PATIENCE)
		s->present = 1;
	return 0;
}

/* Growth without probes. */
always_inline u64 grow_blindly(struct state *s, int room)
{
	if (!room) {
		s->step = 0;
		return 0;
	}
	u64 limit = s->knee > s->quiet || !s->knee ? FAR_MOST : BLIND_MOST;
	u64 step = max(target(s->quiet) / 4, min(2 * s->step, mul(s->quiet, limit)));
	u64 gap = less(s->knee, s->quiet);

	if (gap && gap <= step) {
		s->step = 0;
		return gap;
	}
	s->step = step;
	return step;
}

/* Computes the quiet window of the next round. */
always_inline void adjust(const struct tcp_sock *tp, struct state *s, const struct round *r)
{
	u64 window = s->quiet, own = target(window), rwnd = rwnd_of(tp), add = 0, cut = 0;
	u64 in_queue = mul(window, part(r->worst, r->rtt));
	int was_starting = s->starting;

	if (was_starting && r->own > own)
		leave_start(s);
	if (s->starting) {
		if (in_queue > SLOW_START_QUEUE * own)
			leave_start(s);
		else
			add = min(window, less(rwnd, window));
	} else if (r->own < own) {
		s->opening = min(2 * s->opening, OPENING_MOST);
		add = max(mul(own - r->own, s->opening), grow_blindly(s, r->room));
	} else {
		s->step = 0;
		s->opening = ONE / 8;
		s->knee = max(mul(s->last, ONE - part(r->queue, r->rtt)), mul(s->knee, KNEE_LEFT));
		cut = r->own - own;
	}

	u64 worst = (u64)r->worst << TIME_BITS;
	int full = worst > mul(s->longest, FULL) && 100ULL * r->worst > s->base && (!was_starting || in_queue > own);
	int collapse = s->recent > COLLAPSE;

	if (r->lost && (full || collapse)) {
		u64 excess = full ? mul(less(r->lost, s->innocent), CUT) : 0;

		s->step = 0;
		cut = max(cut, mul(window, min(collapse ? max(excess, r->lost) : excess, ONE)));
		add = 0;
		if (s->starting)
			leave_start(s);
	}
	u64 limit = s->starting ? ~0ULL : s->stalled || !s->used ? window : max(rwnd, window);

	s->last = window;
	s->quiet = max(min(less(window + add, cut), limit), LEAST);
}

always_inline void end_round(struct sock *sk, struct state *s)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct round r = {};

	if (!measure(tp, s, &r))
		return;
	if (!s->starting && !s->present && !s->crowded)
		s->firm = max(min(s->firm, s->most), LEAST_FIRM);
	if (judge_rival(s, &r))
		s->quiet = max(s->quiet, s->firm);
	adjust(tp, s, &r);
	s->stalled = 0;
	s->used = 0;
	apply(sk, s);
}

always_inline void control_acked(struct sock *sk, struct state *s, const struct ack_sample *a)
{
	struct tcp_sock *tp = tcp_sk(sk);

	s->last_ack = tp->tcp_mstamp;
	if (s->silent) {
		s->silent = 0;
		apply(sk, s);
	}
	if (a->rtt_us > 0) {
		/* In a recovery an RTT is only an upper bound: data waits behind the hole. */
		if (s->ca_state != TCP_CA_Recovery && s->ca_state != TCP_CA_Loss)
			sample(s, a->rtt_us);
		else if (s->base == NONE || 1000ULL * s->base <= 1001ULL * a->rtt_us)
			s->least = min(s->least, a->rtt_us);
	}
	if (s->ca_state != TCP_CA_Recovery && (s->present || s->firm < s->quiet) && a->pkts_acked)
		s->firm += ratio(min(a->pkts_acked, 2) << 32, s->firm);
	/* Waits for the peer's window or for room in the send buffer (TCP_CHRONO_RWND_LIMITED, TCP_CHRONO_SNDBUF_LIMITED). */
	s->stalled |= BIT_FIELD(tp, chrono_type) >= 2;
	s->used |= BIT_FIELD(tp, is_cwnd_limited);
	if (round_over(tp, a, s->round_start)) {
		s->round_over = 1;
		s->round_start = tp->delivered;
	}
}

always_inline void control_window(struct sock *sk, struct state *s)
{
	if (s->round_over) {
		s->round_over = 0;
		end_round(sk, s);
	}
	if (s->base != NONE)
		pace(sk, s);
}

/* A loss or a mark reduces the firm window. */
always_inline void lose(struct state *s)
{
	s->firm = max(mul(s->firm, KEPT_FIRM), LEAST_FIRM);
}

always_inline void control_state(struct sock *sk, struct state *s, u32 to)
{
	struct tcp_sock *tp = tcp_sk(sk);

	s->ca_state = to;
	if (to == TCP_CA_Recovery || to == TCP_CA_CWR) {
		lose(s);
		if (s->present) {
			s->present = 0;
			s->crowded = RESUME;
			s->quiet = max(s->quiet, s->firm);
		}
		/* A mark means that the queue is too long (RFC 3168). */
		if (to == TCP_CA_CWR)
			s->quiet = max(min(s->quiet, rwnd_of(tp)) / 2, LEAST);
		apply(sk, s);
	} else if (to == TCP_CA_Loss) {
		u64 rtt = s->median != NONE ? s->median : s->handshake;

		lose(s);
		if (2 * (tp->tcp_mstamp - s->last_ack) > 3 * rtt) {
			s->quiet = max(s->quiet / 2, LEAST);
			s->silent = 1;
		}
		apply(sk, s);
	}
}

/* The window has no threshold. */
always_inline u32 control_ssthresh(struct sock *sk, struct state *s)
{
	return TCP_INFINITE_SSTHRESH;
}

always_inline void control_event(struct sock *sk, struct state *s, u32 event)
{
}

always_inline u32 control_undo(struct sock *sk, struct state *s)
{
	return tcp_sk(sk)->snd_cwnd;
}

#include "control.h"
