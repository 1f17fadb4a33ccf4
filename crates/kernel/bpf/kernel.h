/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The part of the Linux kernel that the controls see. In BPF, the loader finds every member by its name in the types of the
 * running kernel (CO-RE), so that only the members used are listed, in any order. For the replay in user space the same
 * structures are ordinary memory.
 */
#ifndef SKYHAUL_KERNEL_H
#define SKYHAUL_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

#define always_inline static inline __attribute__((always_inline))

enum tcp_ca_state { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
};

#define TCP_INFINITE_SSTHRESH 0x7fffffff
/* Any program may choose the control, not only a privileged one. */
#define TCP_CONG_NON_RESTRICTED 1
#define SK_PACING_NEEDED 1
#define ICSK_CA_PRIV_SIZE 104

#ifdef __bpf__
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#endif

struct sock {
	unsigned long sk_pacing_rate;
	u32 sk_pacing_status;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u64 icsk_ca_priv[ICSK_CA_PRIV_SIZE / 8];
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 snd_wnd;
	u32 mss_cache;
	u32 packets_out;
	u32 max_packets_out;
	u32 srtt_us;
	u32 delivered;
	u32 lost;
	u64 tcp_mstamp;
	struct minmax rtt_min;
	u8 chrono_type : 2;
	u8 is_cwnd_limited : 1;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

#ifdef __bpf__
#pragma clang attribute pop

/* The members that a control may set; the loader finds them by name in the kernel's structure. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const void *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	char name[16];
	u32 flags;
};

#define SEC(name) __attribute__((section(name), used))

/* Helpers of the kernel, by their numbers in linux/bpf.h. */
static void *(*const bpf_sk_storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107;
#define BPF_SK_STORAGE_GET_F_CREATE 1
#define BPF_MAP_TYPE_SK_STORAGE 24
#define BPF_F_NO_PREALLOC 1

/*
 * A field of bits, wherever the running kernel has it: its position comes from the kernel's types (CO-RE). The compiler must not
 * join the offset with the access, because a field of bits may be a whole byte in the running kernel.
 */
enum { FIELD_BYTE_OFFSET, FIELD_BYTE_SIZE, FIELD_EXISTS, FIELD_SIGNED, FIELD_LSHIFT_U64, FIELD_RSHIFT_U64 };
#define BIT_FIELD(s, f) \
	({ \
		u64 offset = __builtin_preserve_field_info((s)->f, FIELD_BYTE_OFFSET), value = 0; \
		asm volatile("" : "+r"(offset)); \
		const void *at = (const void *)(s) + offset; \
		switch (__builtin_preserve_field_info((s)->f, FIELD_BYTE_SIZE)) { \
		case 1: value = *(const u8 *)at; break; \
		case 2: value = *(const u16 *)at; break; \
		case 4: value = *(const u32 *)at; break; \
		case 8: value = *(const u64 *)at; break; \
		} \
		value <<= __builtin_preserve_field_info((s)->f, FIELD_LSHIFT_U64); \
		value >> __builtin_preserve_field_info((s)->f, FIELD_RSHIFT_U64); \
	})
#else
#define BIT_FIELD(s, f) ((s)->f)
#endif

always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

#endif
