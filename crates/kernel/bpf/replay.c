/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Replays events through a control in user space: cc -DCONTROL='"gaimd.bpf.c"' replay.c. Each line of standard input is an event;
 * it calls the control in the order in which the kernel does, and the answer is a line with window and threshold in segments.
 * Times are in microseconds, lengths in bytes, everything else in segments.
 *
 *   start NOW SRTT MSS RWND CWND
 *   ack NOW ACKED ARRIVED LOST RTT SRTT MIN_RTT ROUND LIMITED STALLED
 *                             RTT is -1 without a sample. 1 or 0: the acknowledgement ends a ROUND, the window LIMITED the
 *                             sender, the peer's window STALLED it
 *   loss | mark               a loss is found and repaired from now on; an ECN echo
 *   recovered | open          the repair is over: after a loss, after a timeout
 *   timeout NOW BACKOFF       the retransmission timer has expired for the BACKOFF-th time in a row
 *   undo                      the last reduction was spurious
 */
#include <stdio.h>
#include <string.h>

#include CONTROL

static struct tcp_sock tp;
static struct state state;
/* Segments delivered at the end of the last round, and the threshold before the last reduction. */
static u32 round_end, prior_ssthresh;

#define SK ((struct sock *)&tp)

static void change(u32 to)
{
#ifdef WANTS_STATE
	control_state(SK, &state, to);
#else
	(void)to;
#endif
}

static void reduce_window(void)
{
	prior_ssthresh = tp.snd_ssthresh;
	tp.snd_ssthresh = control_ssthresh(SK, &state);
}

/* The kernel has lowered the window to the threshold, unless the control sets the whole window. */
static void complete(void)
{
#ifndef WHOLE_WINDOW
	tp.snd_cwnd = tp.snd_ssthresh;
#endif
	control_event(SK, &state, CA_EVENT_COMPLETE_CWR);
	change(TCP_CA_Open);
}

static double windows(double *ssthresh)
{
#ifdef WHOLE_WINDOW
	*ssthresh = 1.0 / 0.0;
	return (double)state.cwnd / ONE;
#else
	*ssthresh = tp.snd_ssthresh >= TCP_INFINITE_SSTHRESH ? 1.0 / 0.0 : (double)ssthresh_of(&tp, &state.frame) / ONE;
	return (double)cwnd_of(&tp, &state.frame) / ONE;
#endif
}

int main(void)
{
	char line[256];
	int repairs = 0;

	while (fgets(line, sizeof(line), stdin)) {
		unsigned long long now;
		unsigned acked, arrived, lost, srtt, min, round, limited, stalled, mss, rwnd, initial, backoff;
		int rtt;

		if (sscanf(line, "start %llu %u %u %u %u", &now, &srtt, &mss, &rwnd, &initial) == 5) {
			memset(&tp, 0, sizeof(tp));
			memset(&state, 0xa5, sizeof(state));
			tp.snd_cwnd = initial;
			tp.snd_cwnd_clamp = ~0U;
			tp.snd_ssthresh = TCP_INFINITE_SSTHRESH;
			tp.tcp_mstamp = now;
			tp.srtt_us = srtt << 3;
			tp.rtt_min.s[0].v = srtt ? srtt : ~0U;
			tp.mss_cache = mss;
			tp.snd_wnd = rwnd;
			round_end = repairs = 0;
			control_init(SK, &state);
		} else if (sscanf(line, "ack %llu %u %u %u %d %u %u %u %u %u", &now, &acked, &arrived, &lost, &rtt, &srtt, &min,
				  &round, &limited, &stalled) == 10) {
			tp.tcp_mstamp = now;
			tp.delivered += arrived;
			tp.lost += lost;
			tp.srtt_us = srtt << 3;
			tp.rtt_min.s[0].v = min ? min : ~0U;
			tp.is_cwnd_limited = limited;
			tp.max_packets_out = 0;
			tp.chrono_type = stalled ? 2 : 0;
			/* The newest acknowledged segment was sent after the last round, or before its end. */
			u32 prior = round ? round_end : round_end - 1;
			struct ack_sample sample = { acked, rtt, tp.mss_cache * (tp.delivered - prior) };

			if (round)
				round_end = tp.delivered;
			control_acked(SK, &state, &sample);
#ifdef WHOLE_WINDOW
			control_window(SK, &state);
#else
			if (!repairs && acked)
				control_grow(SK, &state, acked);
#endif
		} else if (!strcmp(line, "loss\n")) {
			repairs = 1;
			reduce_window();
			change(TCP_CA_Recovery);
		} else if (!strcmp(line, "mark\n")) {
			reduce_window();
			change(TCP_CA_CWR);
			complete();
		} else if (!strcmp(line, "recovered\n")) {
			repairs = 0;
			complete();
		} else if (!strcmp(line, "open\n")) {
			change(TCP_CA_Open);
		} else if (sscanf(line, "timeout %llu %u", &now, &backoff) == 2) {
			tp.tcp_mstamp = now;
			if (backoff == 1) {
				reduce_window();
				control_event(SK, &state, CA_EVENT_LOSS);
			}
			tp.snd_cwnd = 1;
			change(TCP_CA_Loss);
		} else if (!strcmp(line, "undo\n")) {
			tp.snd_cwnd = control_undo(SK, &state);
			if (prior_ssthresh > tp.snd_ssthresh)
				tp.snd_ssthresh = prior_ssthresh;
			repairs = 0;
			change(TCP_CA_Open);
		} else {
			fprintf(stderr, "not an event: %s", line);
			return 1;
		}
		double ssthresh, cwnd = windows(&ssthresh);

		printf("%.9f %.9f\n", cwnd, ssthresh);
	}
	return 0;
}
