#include "tests/support/counted_system_calls.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace::testing {
namespace {

SystemCalls* counted = nullptr;

// The kernel sends this in place of the call, to the thread that made it.
void OnSystemCall(int /*signal*/, siginfo_t* info, void* context) {
  int none = -1;
  counted->first.compare_exchange_strong(none, info->si_syscall,
                                         std::memory_order_relaxed);
  counted->num.fetch_add(1, std::memory_order_relaxed);
  auto* registers = static_cast<ucontext_t*>(context);
#if defined(__x86_64__)
  registers->uc_mcontext.gregs[REG_RAX] = -ENOSYS;
#elif defined(__aarch64__)
  registers->uc_mcontext.regs[0] = static_cast<uint64_t>(-ENOSYS);
#endif
}

std::vector<sock_filter> AllowOnly(const std::vector<int>& allowed) {
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const int call : allowed) {
    filter.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
  return filter;
}

}  // namespace

int CountSystemCalls(SystemCalls& calls) {
  counted = &calls;
  struct sigaction action = {};
  action.sa_sigaction = OnSystemCall;
  action.sa_flags = SA_SIGINFO;
  if (sigaction(SIGSYS, &action, nullptr) != 0 ||
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return errno;
  }
  std::vector<sock_filter> filter =
      AllowOnly({SYS_futex, SYS_sched_yield, SYS_clock_gettime,
                 SYS_rt_sigreturn, SYS_exit_group});
  const sock_fprog program = {static_cast<uint16_t>(filter.size()),
                              filter.data()};
  // TSYNC: on all threads at once; a thread that cannot is named by the result.
  const int64_t result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                 SECCOMP_FILTER_FLAG_TSYNC, &program);
  return result == 0 ? 0 : (result > 0 ? ESRCH : errno);
}

}  // namespace millrace::testing
