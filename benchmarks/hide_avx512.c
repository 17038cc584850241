// Makes an Intel processor with AVX-512 look like one without it to the program that loads this, so that every library
// takes the way that it takes there. Needs Linux and a processor whose cpuid can fault (`grep cpuid_fault /proc/cpuinfo`).
//
//   gcc -O1 -shared -fPIC -o hide_avx512.so benchmarks/hide_avx512.c -ldl
//   LD_PRELOAD=./hide_avx512.so python -m benchmarks.train_step
//
// The kernel lets each `cpuid` of the process raise SIGSEGV; the handler runs the instruction and clears what a Kaby Lake
// has not: AVX-512, its neural network instructions, AMX.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define ARCH_SET_CPUID 0x1012
#define KABY_LAKE 0x906E9
#define BIT(n) (1u << (n))

// Of leaf 7: AVX512F, DQ, IFMA, PF, ER, CD, BW, VL; VBMI, VBMI2, GFNI, VAES, VPCLMULQDQ, VNNI, BITALG, VPOPCNTDQ; 4VNNIW,
// 4FMAPS, VP2INTERSECT, AMX-BF16, FP16, AMX-TILE, AMX-INT8.
static const uint32_t hidden_ebx = BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31);
static const uint32_t hidden_ecx = BIT(1) | BIT(6) | BIT(8) | BIT(9) | BIT(10) | BIT(11) | BIT(12) | BIT(14);
static const uint32_t hidden_edx = BIT(2) | BIT(3) | BIT(8) | BIT(22) | BIT(23) | BIT(24) | BIT(25);

static int (*set_action)(int, const struct sigaction *, struct sigaction *);

// Python's fault handler would take the place of ours.
int sigaction(int number, const struct sigaction *action, struct sigaction *before) {
  if (!set_action) set_action = dlsym(RTLD_NEXT, "sigaction");
  return set_action(number, number == SIGSEGV ? NULL : action, before);
}

static void answer_cpuid(int number, siginfo_t *info, void *context) {
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  const uint8_t *instruction = (const uint8_t *)registers[REG_RIP];
  if (instruction[0] != 0x0F || instruction[1] != 0xA2) {  // a fault of the program: let it end as it would
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    set_action(SIGSEGV, &usual, NULL);
    return;
  }
  const uint32_t leaf = registers[REG_RAX], part = registers[REG_RCX];
  uint32_t a = leaf, b, c = part, d;
  syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1);
  __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
  if (leaf == 1) a = KABY_LAKE;
  if (leaf == 7 && part == 0) {
    a = 0;  // no further parts
    b &= ~hidden_ebx;
    c &= ~hidden_ecx;
    d &= ~hidden_edx;
  }
  if ((leaf == 7 && part > 0) || leaf == 0x1D || leaf == 0x1E) a = b = c = d = 0;  // AVX-512 BF16, and AMX's tiles
  registers[REG_RAX] = a;
  registers[REG_RBX] = b;
  registers[REG_RCX] = c;
  registers[REG_RDX] = d;
  registers[REG_RIP] += 2;
}

__attribute__((constructor)) static void begin(void) {
  const struct sigaction action = {.sa_sigaction = answer_cpuid, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
  sigaction(SIGSEGV, NULL, NULL);  // finds the C library's
  set_action(SIGSEGV, &action, NULL);
  syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
}
