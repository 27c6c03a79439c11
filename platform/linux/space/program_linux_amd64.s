// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// program is never called here: it is the code of the process that init.go describes.
// It uses no stack, and of memory the list at listAt alone.
TEXT program<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ $0x201000, R12

next:
	MOVQ 0(R12), AX
	CMPQ AX, $0
	JLT  reap
	MOVQ 8(R12), DI
	MOVQ 16(R12), SI
	MOVQ 24(R12), DX
	MOVQ 32(R12), R10
	MOVQ 40(R12), R8
	SYSCALL
	CMPQ AX, $0
	JLT  fail
	ADDQ $48, R12
	JMP  next

	// The status is the number of the error.
fail:
	NEGQ AX
	MOVQ AX, DI
	MOVQ $231, AX // exit_group
	SYSCALL

	// Wait for children, and while there are none for the signal of one.
reap:
	MOVQ $61, AX // wait4
	MOVQ $-1, DI
	MOVQ $0, SI
	MOVQ $0, DX
	MOVQ $0, R10
	SYSCALL
	CMPQ AX, $-10 // ECHILD
	JNE  reap
	MOVQ $128, AX // rt_sigtimedwait
	MOVQ 8(R12), DI
	MOVQ $0, SI
	MOVQ $0, DX
	MOVQ $8, R10
	SYSCALL
	JMP  reap

// programEnd stands behind program.
TEXT programEnd<>(SB), NOSPLIT|NOFRAME, $0-0
	RET

// func programAt() (start, end unsafe.Pointer)
TEXT ·programAt(SB), NOSPLIT, $0-16
	LEAQ program<>(SB), AX
	MOVQ AX, start+0(FP)
	LEAQ programEnd<>(SB), AX
	MOVQ AX, end+8(FP)
	RET
