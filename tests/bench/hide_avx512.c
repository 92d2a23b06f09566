/* Makes a program believe that its CPU ends at AVX2: preloaded, it has the kernel trap the CPUID
   instruction and answers without AVX-512, AVX-VNNI and AMX. For libraries that choose their code by
   CPUID and have no switch of their own. Needs Linux on x86-64 and a CPU that can trap CPUID
   ("cpuid_fault" in /proc/cpuinfo); where that lacks, the program ends with status 77. */

#define _GNU_SOURCE
#include <asm/prctl.h>
#include <cpuid.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { TRAPPED = 0, ALLOWED = 1, NOT_AVAILABLE = 77 };

#define BIT(n) (1u << (n))

/* What to hide of CPUID's leaf 7, by register. */
static const unsigned AVX512_EBX =
    BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31);
static const unsigned AVX512_ECX = BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14);
static const unsigned AVX512_AND_AMX_EDX =
    BIT(2) | BIT(3) | BIT(8) | BIT(22) | BIT(23) | BIT(24) | BIT(25);
/* AVX-VNNI, AVX512-BF16, AMX-FP16, AVX-IFMA. */
static const unsigned SUBLEAF_1_EAX = BIT(4) | BIT(5) | BIT(21) | BIT(23);
/* AVX-VNNI-INT8, AVX-NE-CONVERT, AMX-COMPLEX, AVX-VNNI-INT16, AVX10. */
static const unsigned SUBLEAF_1_EDX = BIT(4) | BIT(5) | BIT(8) | BIT(10) | BIT(19);

static long set_cpuid(long state) { return syscall(SYS_arch_prctl, ARCH_SET_CPUID, state); }

static void answer(greg_t *registers) {
    unsigned leaf = (unsigned)registers[REG_RAX], subleaf = (unsigned)registers[REG_RCX];
    unsigned a, b, c, d;
    set_cpuid(ALLOWED);
    __cpuid_count(leaf, subleaf, a, b, c, d);
    set_cpuid(TRAPPED);
    if (leaf == 7 && subleaf == 0) {
        b &= ~AVX512_EBX;
        c &= ~AVX512_ECX;
        d &= ~AVX512_AND_AMX_EDX;
    }
    if (leaf == 7 && subleaf == 1) {
        a &= ~SUBLEAF_1_EAX;
        d &= ~SUBLEAF_1_EDX;
    }
    registers[REG_RAX] = a;
    registers[REG_RBX] = b;
    registers[REG_RCX] = c;
    registers[REG_RDX] = d;
    registers[REG_RIP] += 2;
}

static void trapped(int number, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char cpuid[] = {0x0f, 0xa2};
    (void)info;
    if (memcmp((const void *)registers[REG_RIP], cpuid, sizeof cpuid) == 0)
        answer(registers);
    else
        signal(number, SIG_DFL);
}

__attribute__((constructor)) static void begin(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = trapped;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    if (sigaction(SIGSEGV, &action, 0) != 0 || set_cpuid(TRAPPED) != 0)
        _exit(NOT_AVAILABLE);
}
