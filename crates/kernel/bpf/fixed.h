/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixed-point arithmetic. "Q32" has 32 bits behind the point: a window of 1 segment is ONE.
 */
#ifndef SKYHAUL_FIXED_H
#define SKYHAUL_FIXED_H

#include "kernel.h"

#define ONE (1ULL << 32)
/* A fraction as a constant. */
#define Q32(num, den) ((u64)(num) * ONE / (den))

always_inline u64 min(u64 a, u64 b)
{
	return a < b ? a : b;
}

always_inline u64 max(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* a - b, but at least 0. */
always_inline u64 less(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

/*
 * The same number, of which the compiler knows nothing. In loops a choice is a product with 0 or 1: the verifier follows every
 * combination of branches, the compiler makes a branch of a product with a bit, and the verifier one of a mask.
 */
always_inline u64 opaque(u64 a)
{
	asm volatile("" : "+r"(a));
	return a;
}

/* a * q, where q is a Q32 below 2; a may use all bits. */
always_inline u64 mul(u64 a, u64 q)
{
	return (a >> 32) * q + ((((a & (ONE - 1)) >> 1) * q) >> 31);
}

/* a / b as a Q32, of two Q32; b is at least 2^-16, and the quotient below 2^32. */
always_inline u64 ratio(u64 a, u64 b)
{
	u64 d = max(b >> 16, 1), q = a / d, r = a % d;

	return (q << 16) + (r << 16) / d;
}

/* num / den as a Q32, of whole numbers: num below 2^48. */
always_inline u64 quotient(u64 num, u64 den)
{
	den = max(den, 1);
	u64 high = (num << 16) / den, rest = (num << 16) % den;

	return den < (1ULL << 48) ? (high << 16) + (rest << 16) / den : high << 16;
}

/* The square root of a Q32 below 2^30, as a Q32. */
always_inline u64 root(u64 a)
{
	/* Bit by bit, of a number with 48 bits behind the point if there is room for them. */
	int small = a < (1ULL << 46);
	u64 rest = opaque(small ? a << 16 : a), r = 0;

#pragma clang loop unroll(full)
	for (int i = 30; i >= 0; i--) {
		u64 bit = 1ULL << (2 * i), step = r + bit;
		/* 1 if `rest` is at least `step`. */
		u64 fits = opaque(1 - ((rest - step) >> 63));

		rest -= step * fits;
		r = (r >> 1) + bit * fits;
	}
	return small ? r << 8 : r << 16;
}

/* 2^-x for a Q32 x, as a Q32. */
always_inline u64 half_to_the(u64 x)
{
	/* 2^-(1/2), 2^-(1/4), ... as Q32. */
	static const u64 roots[16] = {
		3037000500, 3611622603, 3938502376, 4112874773, 4202935003, 4248701965, 4271771996, 4283353945,
		4289156690, 4292061010, 4293513907, 4294240540, 4294603903, 4294785595, 4294876445, 4294921870,
	};
	u64 whole = x >> 32, part = x & (ONE - 1);
	/* For the bits that the table does not have: 2^-r = 1 - r ln 2. */
	u64 power = ONE - (((part & 0xffff) * 2977044472ULL) >> 32);

#pragma clang loop unroll(full)
	for (int i = 0; i < 16; i++) {
		u64 set = opaque((part >> (31 - i)) & 1);

		power -= mul(power, (ONE - roots[i]) * set);
	}
	return whole < 64 ? power >> whole : 0;
}

/* exp(-us / 1 s) of a time in microseconds, as a Q32. */
always_inline u64 decay_over(u64 us)
{
	/* log2(e) / 1e6, with 52 bits behind the point. After 60 s nothing is left. */
	return us < 60000000 ? half_to_the((us * 6497320849ULL) >> 20) : 0;
}

/*
 * Rates are segments per second with 20 bits behind the point.
 */
#define RATE_BITS 20

/* So many segments, at most 2^19, in so many microseconds, as a rate. */
always_inline u64 rate_of(u64 segments, u64 us)
{
	return ((min(segments, 1 << 19) * 1000000) << RATE_BITS) / max(us, 1);
}

/* Segments that a rate carries in so many microseconds, as a Q32. */
always_inline u64 carried_in(u64 rate, u64 us)
{
	u64 whole = rate / 1000000, rest = rate % 1000000;
	u64 segments = whole * us + rest * us / 1000000;

	return min(segments, 1ULL << 50) << (32 - RATE_BITS);
}

#endif
