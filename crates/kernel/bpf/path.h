/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What an acknowledgement says of the path: segments that arrived, rounds, round-trip times.
 */
#ifndef SKYHAUL_PATH_H
#define SKYHAUL_PATH_H

#include "fixed.h"

/* The smoothed RTT in microseconds, 0 before the first one. The kernel keeps eight times as much. */
always_inline u32 smoothed_rtt(const struct tcp_sock *tp)
{
	return tp->srtt_us >> 3;
}

/* The minimum RTT of the last five minutes (net.ipv4.tcp_min_rtt_wlen) in microseconds, 0 without any. */
always_inline u32 min_rtt(const struct tcp_sock *tp)
{
	u32 least_rtt = tp->rtt_min.s[0].v;

	return least_rtt == ~0U ? 0 : least_rtt;
}

/*
 * Segments that an acknowledgement reports as received: `AckedCount` of Westwood. A duplicate counts for what it reports (SACK);
 * the cumulative acknowledgement after a series of duplicates covers these segments again. `kept` of its own segments stay in the
 * credit of the duplicates.
 */
struct credit {
	/* Segments reported and not yet covered. */
	u32 open;
	/* tp->delivered at the last acknowledgement. */
	u32 delivered;
};

always_inline u32 credited(struct credit *c, const struct tcp_sock *tp, u32 acked, u32 kept)
{
	u32 reported = tp->delivered - c->delivered;

	c->delivered = tp->delivered;
	if (!acked) {
		c->open += reported;
		return reported;
	}
	if (acked == 1)
		return 1;
	if (c->open >= acked) {
		c->open -= acked - kept;
		return 1;
	}
	acked -= c->open;
	c->open = 0;
	return acked;
}

/*
 * Whether an acknowledgement is the first for data sent after `next` segments had been delivered, and so ends a round. The
 * kernel reports what was delivered since the newest acknowledged segment was sent, in bytes.
 */
always_inline int round_over(const struct tcp_sock *tp, const struct ack_sample *sample, u32 next)
{
	if (!sample->pkts_acked && sample->rtt_us < 0)
		return 0;
	u32 since = sample->in_flight / max(tp->mss_cache, 1);

	return (s32)(tp->delivered - since - next) >= 0;
}

#endif
