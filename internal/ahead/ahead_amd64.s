#include "textflag.h"

// func lines(p unsafe.Pointer, n int)
TEXT ·lines(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX

next:
	PREFETCHT0 (AX)
	ADDQ       $64, AX
	DECQ       CX
	JG         next
	RET

// func behind(pp unsafe.Pointer, n int)
TEXT ·behind(SB), NOSPLIT, $0-16
	MOVQ pp+0(FP), AX
	MOVQ n+8(FP), CX
	MOVQ (AX), AX

next:
	PREFETCHT0 (AX)
	ADDQ       $64, AX
	DECQ       CX
	JG         next
	RET

// func beyond(pp unsafe.Pointer, off uintptr, n int)
TEXT ·beyond(SB), NOSPLIT, $0-24
	MOVQ  pp+0(FP), AX
	MOVQ  off+8(FP), BX
	MOVQ  n+16(FP), CX
	MOVQ  (AX), AX
	TESTQ AX, AX
	JEQ   nowhere
	MOVQ  (AX)(BX*1), AX

next:
	PREFETCHT0 (AX)
	ADDQ       $64, AX
	DECQ       CX
	JG         next

nowhere:
	RET

// func room(p unsafe.Pointer, n int)
TEXT ·room(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX

next:
	BYTE $0x0f; BYTE $0x0d; BYTE $0x08 // PREFETCHW (AX), which the assembler does not know
	ADDQ $64, AX
	DECQ CX
	JG   next
	RET
