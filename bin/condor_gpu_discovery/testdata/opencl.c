// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// A library with the functions of an OpenCL loader that the program asks: one
// platform without a GPU and one with two.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int clGetPlatformIDs(unsigned n, uintptr_t *to, unsigned *count) {
	for (unsigned i = 0; i < n && i < 2; i++) to[i] = i + 1;
	if (count) *count = 2;
	return 0;
}
int clGetPlatformInfo(uintptr_t p, unsigned what, size_t n, char *to, size_t *size) {
	const char *s = "Portable";
	if (size) *size = strlen(s) + 1;
	if (to && n > strlen(s)) strcpy(to, s);
	return 0;
}
int clGetDeviceIDs(uintptr_t p, uint64_t type, unsigned n, uintptr_t *to, unsigned *count) {
	if (p == 1 || type != 4) return -1;
	for (unsigned i = 0; i < n && i < 2; i++) to[i] = i + 10;
	if (count) *count = 2;
	return 0;
}
int clGetDeviceInfo(uintptr_t d, unsigned what, size_t n, char *to, size_t *size) {
	const char *s = NULL;
	switch (what) {
	case 0x102b: s = d == 10 ? "Arc A770" : "Arc A380"; break;
	case 0x102f: s = "OpenCL 3.0 NEO"; break;
	case 0x101f: { uint64_t v = d == 10 ? 16704737280ULL : 6375342080ULL; if (n < 8) return -30; memcpy(to, &v, 8); return 0; }
	case 0x1002: { unsigned v = d == 10 ? 512 : 128; if (n < 4) return -30; memcpy(to, &v, 4); return 0; }
	case 0x100c: { unsigned v = 2400; if (n < 4) return -30; memcpy(to, &v, 4); return 0; }
	case 0x1024: { unsigned v = 0; if (n < 4) return -30; memcpy(to, &v, 4); return 0; }
	default: return -30;
	}
	if (size) *size = strlen(s) + 1;
	if (to && n > strlen(s)) strcpy(to, s);
	return 0;
}
