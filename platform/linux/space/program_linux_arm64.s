// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// program is never called here: it is the code of the process that init.go describes.
// It uses no stack, and of memory the list at listAt alone.
TEXT program<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVD $0x200000, R19
	ADD  $0x1000, R19

next:
	MOVD 0(R19), R8
	CMP  $0, R8
	BLT  reap
	MOVD 8(R19), R0
	MOVD 16(R19), R1
	MOVD 24(R19), R2
	MOVD 32(R19), R3
	MOVD 40(R19), R4
	SVC
	CMP  $0, R0
	BLT  fail
	ADD  $48, R19
	B    next

	// The status is the number of the error.
fail:
	NEG  R0, R0
	MOVD $94, R8 // exit_group
	SVC

	// Wait for children, and while there are none for the signal of one.
reap:
	MOVD $260, R8 // wait4
	MOVD $-1, R0
	MOVD $0, R1
	MOVD $0, R2
	MOVD $0, R3
	SVC
	CMN  $10, R0 // -ECHILD
	BNE  reap
	MOVD $137, R8 // rt_sigtimedwait
	MOVD 8(R19), R0
	MOVD $0, R1
	MOVD $0, R2
	MOVD $8, R3
	SVC
	B    reap

// programEnd stands behind program.
TEXT programEnd<>(SB), NOSPLIT|NOFRAME, $0-0
	RET

// func programAt() (start, end unsafe.Pointer)
TEXT ·programAt(SB), NOSPLIT, $0-16
	MOVD $program<>(SB), R0
	MOVD R0, start+0(FP)
	MOVD $programEnd<>(SB), R0
	MOVD R0, end+8(FP)
	RET
