/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Makes a control of its functions, at the end of its file: BPF programs and their structure for the kernel, or, in user space,
 * a table for the replay. The file defines NAME and `struct state`, and the functions
 *
 *   control_init, control_acked (pkts_acked), control_grow (cong_avoid) or, with WHOLE_WINDOW, control_window (cong_control),
 *   control_ssthresh, control_event (cwnd_event), with WHOLE_WINDOW control_undo, and with WANTS_STATE control_state (set_state).
 *
 * With LARGE_STATE the state does not fit in the 104 bytes that the kernel has in each socket for it.
 */
#ifndef WHOLE_WINDOW
/* A control that leaves the window of a recovery to the kernel undoes a reduction from what its frame remembers. */
always_inline u32 control_undo(struct sock *sk, struct state *s)
{
	return undone(tcp_sk(sk), &s->frame);
}
#endif

#define QUOTE(x) #x
#define QUOTED(x) QUOTE(x)

#ifdef __bpf__

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* STATE declares `s`, the state of a socket; a function whose socket has none returns `none`. */
#ifdef LARGE_STATE
struct {
	int (*type)[BPF_MAP_TYPE_SK_STORAGE];
	int (*map_flags)[BPF_F_NO_PREALLOC];
	int *key;
	struct state *value;
} states SEC(".maps");
#define STATE(sk, flags, none) \
	struct state *s = bpf_sk_storage_get(&states, sk, 0, flags); \
	if (!s) \
		return none
#else
_Static_assert(sizeof(struct state) <= ICSK_CA_PRIV_SIZE, "the state fits in the socket");
#define STATE(sk, flags, none) struct state *s = (void *)((struct inet_connection_sock *)(sk))->icsk_ca_priv
#endif
#define SOCK(ctx) struct sock *sk = (struct sock *)(ctx)[0]

SEC("struct_ops/init")
void init(u64 *ctx)
{
	SOCK(ctx);
	STATE(sk, BPF_SK_STORAGE_GET_F_CREATE, );
	control_init(sk, s);
}

SEC("struct_ops/acked")
void acked(u64 *ctx)
{
	SOCK(ctx);
	STATE(sk, 0, );
	control_acked(sk, s, (const struct ack_sample *)ctx[1]);
}

SEC("struct_ops/ssthresh")
u32 ssthresh(u64 *ctx)
{
	SOCK(ctx);
	STATE(sk, 0, 2);
	return control_ssthresh(sk, s);
}

SEC("struct_ops/event")
void event(u64 *ctx)
{
	SOCK(ctx);
	STATE(sk, 0, );
	control_event(sk, s, (u32)ctx[1]);
}

SEC("struct_ops/undo")
u32 undo(u64 *ctx)
{
	SOCK(ctx);
	STATE(sk, 0, tcp_sk(sk)->snd_cwnd);
	return control_undo(sk, s);
}

#ifdef WHOLE_WINDOW
SEC("struct_ops/window")
void window(u64 *ctx)
{
	SOCK(ctx);
	STATE(sk, 0, );
	control_window(sk, s);
}
#else
SEC("struct_ops/grow")
void grow(u64 *ctx)
{
	SOCK(ctx);
	STATE(sk, 0, );
	control_grow(sk, s, (u32)ctx[2]);
}
#endif

#ifdef WANTS_STATE
SEC("struct_ops/state")
void state(u64 *ctx)
{
	SOCK(ctx);
	STATE(sk, 0, );
	control_state(sk, s, (u8)ctx[1]);
}
#endif

SEC(".struct_ops")
struct tcp_congestion_ops NAME = {
	.init = (void *)init,
	.pkts_acked = (void *)acked,
	.ssthresh = (void *)ssthresh,
	.cwnd_event = (void *)event,
	.undo_cwnd = (void *)undo,
#ifdef WHOLE_WINDOW
	.cong_control = (void *)window,
#else
	.cong_avoid = (void *)grow,
#endif
#ifdef WANTS_STATE
	.set_state = (void *)state,
#endif
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = QUOTED(NAME),
};

#endif
