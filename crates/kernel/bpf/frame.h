/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Common code of Reno's relatives: windows in fixed point, Reno's growth, and what a loss, a timeout and the end of a recovery
 * do to the window. The kernel keeps whole segments; their fractions are kept here.
 *
 * The kernel asks for a threshold when a loss is found (ssthresh), lowers the window towards it while the loss is repaired
 * (proportional rate reduction, RFC 9937), and says when that is over (CA_EVENT_COMPLETE_CWR). A timeout also asks for a
 * threshold, and then raises CA_EVENT_LOSS.
 */
#ifndef SKYHAUL_FRAME_H
#define SKYHAUL_FRAME_H

#include "fixed.h"

struct frame {
	/* Window that the last reduction leaves when its repair is over, and window before it: Q32 segments. */
	u64 reduced;
	u64 before;
	/* Threshold of the last reduction, and before it: Q32 segments. */
	u64 threshold;
	u64 threshold_before;
	/* Fractions of snd_cwnd and snd_ssthresh. */
	u32 cwnd_part;
	u32 ssthresh_part;
	/* A reduction waits for the end of its repair. */
	u8 reducing;
	/* The slow start after a timeout is in progress. */
	u8 after_timeout;
};

always_inline u64 cwnd_of(const struct tcp_sock *tp, const struct frame *f)
{
	return ((u64)tp->snd_cwnd << 32) | f->cwnd_part;
}

always_inline u64 ssthresh_of(const struct tcp_sock *tp, const struct frame *f)
{
	return ((u64)tp->snd_ssthresh << 32) | f->ssthresh_part;
}

/* The user's upper limit of windows, Q32 segments. */
always_inline u64 clamp_of(const struct tcp_sock *tp)
{
	return (u64)min(tp->snd_cwnd_clamp, TCP_INFINITE_SSTHRESH) << 32;
}

always_inline void set_cwnd(struct tcp_sock *tp, struct frame *f, u64 to)
{
	to = max(min(to, clamp_of(tp)), ONE);
	tp->snd_cwnd = to >> 32;
	f->cwnd_part = (u32)to;
}

always_inline void set_ssthresh(struct tcp_sock *tp, struct frame *f, u64 to)
{
	to = min(to, (u64)TCP_INFINITE_SSTHRESH << 32);
	tp->snd_ssthresh = to >> 32;
	f->ssthresh_part = (u32)to;
}

always_inline int slow_start(const struct tcp_sock *tp, const struct frame *f)
{
	return cwnd_of(tp, f) < ssthresh_of(tp, f);
}

/* Whether the window was in use (RFC 7661), as the kernel's own controls judge it. */
always_inline int cwnd_limited(const struct tcp_sock *tp, const struct frame *f)
{
	if (BIT_FIELD(tp, is_cwnd_limited))
		return 1;
	return slow_start(tp, f) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* Whether the window may grow; also ends the slow start after a timeout. */
always_inline int may_grow(const struct tcp_sock *tp, struct frame *f)
{
	int limited = cwnd_limited(tp, f);

	if (f->after_timeout && !slow_start(tp, f))
		f->after_timeout = 0;
	return limited;
}

/*
 * Slow start by acknowledged segments up to the threshold (RFC 3465 without its limit, as in Linux; with a limit of one segment
 * in the slow start after a timeout). False in congestion avoidance.
 */
always_inline int grow_in_slow_start(struct tcp_sock *tp, struct frame *f, u32 acked)
{
	u64 cwnd = cwnd_of(tp, f), ssthresh = ssthresh_of(tp, f);

	if (cwnd >= ssthresh)
		return 0;
	u64 n = f->after_timeout ? min(acked, 1) : acked;
	set_cwnd(tp, f, cwnd + min(n << 32, max(ssthresh - cwnd, ONE)));
	return 1;
}

/* The share of a window that this many acknowledged segments are, at most one: Q32. */
always_inline u64 share_of(u64 cwnd, u32 acked)
{
	u64 n = (u64)acked << 32;

	return n >= cwnd ? ONE : ratio(n, cwnd);
}

/* Reno's growth: slow start, then one segment for each window acknowledged (RFC 3465). */
always_inline void grow_like_reno(struct tcp_sock *tp, struct frame *f, u32 acked)
{
	if (!grow_in_slow_start(tp, f, acked)) {
		u64 cwnd = cwnd_of(tp, f);

		set_cwnd(tp, f, cwnd + share_of(cwnd, acked));
	}
}

/* Reno's growth, while the window is in use. */
always_inline void reno_growth(struct tcp_sock *tp, struct frame *f, u32 acked)
{
	if (may_grow(tp, f))
		grow_like_reno(tp, f, acked);
}

/*
 * A loss or a timeout: afterwards the threshold is `threshold`, and after a repaired loss the window `cwnd`. Returns what the
 * kernel lowers the window to meanwhile.
 */
always_inline u32 reduce(struct tcp_sock *tp, struct frame *f, u64 threshold, u64 cwnd)
{
	if (!slow_start(tp, f))
		f->after_timeout = 0;
	f->before = cwnd_of(tp, f);
	f->threshold_before = ssthresh_of(tp, f);
	f->threshold = threshold;
	f->reduced = cwnd;
	f->reducing = 1;
	return min(threshold, cwnd) >> 32;
}

/* A reduction to half of the window, at least two segments (RFC 5681 equation 4). */
always_inline u32 reduce_to_half(struct tcp_sock *tp, struct frame *f)
{
	u64 half = max(cwnd_of(tp, f) / 2, 2 * ONE);

	return reduce(tp, f, half, half);
}

/* A reduction to the window that fits the path, at least two segments; the window is never raised. */
always_inline u32 reduce_to_fit(struct tcp_sock *tp, struct frame *f, u64 fits)
{
	u64 threshold = max(fits, 2 * ONE);

	return reduce(tp, f, threshold, min(cwnd_of(tp, f), threshold));
}

/* The repair of a loss is over. */
always_inline void repaired(struct tcp_sock *tp, struct frame *f)
{
	if (!f->reducing)
		return;
	f->reducing = 0;
	set_ssthresh(tp, f, f->threshold);
	set_cwnd(tp, f, f->reduced);
}

/* The retransmission timer has expired; the kernel sets the window. */
always_inline void timed_out(struct tcp_sock *tp, struct frame *f)
{
	f->reducing = 0;
	f->after_timeout = 1;
	f->cwnd_part = 0;
	set_ssthresh(tp, f, f->threshold);
}

/* What the kernel reports after a reduction (cwnd_event): the repair is over, or the timer has expired. */
always_inline void reduction_event(struct tcp_sock *tp, struct frame *f, u32 event)
{
	if (event == CA_EVENT_COMPLETE_CWR)
		repaired(tp, f);
	else if (event == CA_EVENT_LOSS)
		timed_out(tp, f);
}

/*
 * The last reduction was spurious. Returns the window that the kernel has to set. The kernel restores whole segments of the greater
 * threshold; its fraction is restored here.
 */
always_inline u32 undone(struct tcp_sock *tp, struct frame *f)
{
	u64 to = max(cwnd_of(tp, f), f->before);

	f->cwnd_part = (u32)to;
	f->ssthresh_part = (u32)max(f->reducing ? f->threshold : ssthresh_of(tp, f), f->threshold_before);
	f->reducing = 0;
	f->after_timeout = 0;
	return to >> 32;
}

#endif
