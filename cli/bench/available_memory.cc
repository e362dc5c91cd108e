#include "cli/bench/available_memory.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/bench/system_file.h"

namespace millrace::cli {
namespace {

// No machine has so much: a limit beyond is none.
constexpr int64_t kLimitMax = int64_t{1} << 60;

// How a version of control groups names what is asked of a group.
struct GroupNames {
  absl::string_view file_system;
  absl::string_view controller;  // none: all are in one hierarchy
  // Beyond the second one of version 2 processes are slowed until they give
  // back: it is not for use either.
  std::array<const char*, 2> limits;
  const char* used;
  const char* stat_prefix;
};
constexpr GroupNames kGroupNames[] = {
    {.file_system = "cgroup2",
     .controller = "",
     .limits = {"memory.max", "memory.high"},
     .used = "memory.current",
     .stat_prefix = ""},
    {.file_system = "cgroup",
     .controller = "memory",
     .limits = {"memory.limit_in_bytes", ""},
     .used = "memory.usage_in_bytes",
     .stat_prefix = "total_"},
};

// The lesser of two rooms, of which either may be missing.
std::optional<int64_t> Lesser(std::optional<int64_t> one,
                              std::optional<int64_t> other) {
  if (!one.has_value() || !other.has_value()) {
    return one.has_value() ? one : other;
  }
  return std::min(*one, *other);
}

bool HasController(absl::string_view list, absl::string_view controller) {
  const std::vector<absl::string_view> all = absl::StrSplit(list, ',');
  return controller.empty() || absl::c_linear_search(all, controller);
}

// The group of this process in the hierarchy of `names`, a path that begins
// with '/', from lines "ID:CONTROLLERS:PATH"; none where it is in none.
std::optional<std::string> OwnGroup(const std::string& groups,
                                    const GroupNames& names) {
  for (const absl::string_view line : absl::StrSplit(groups, '\n')) {
    const std::vector<absl::string_view> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() == 3 && fields[1].empty() == names.controller.empty() &&
        HasController(fields[1], names.controller)) {
      return std::string(fields[2]);
    }
  }
  return std::nullopt;
}

// Where a hierarchy is mounted, and which of its groups stands there.
struct GroupMount {
  std::string top;
  std::string point;
};

// From lines "ID PARENT DEVICE TOP POINT OPTIONS... - TYPE SOURCE OPTIONS".
std::vector<GroupMount> MountsOf(const std::string& mounts,
                                 const GroupNames& names) {
  std::vector<GroupMount> found;
  for (const absl::string_view line : absl::StrSplit(mounts, '\n')) {
    const std::vector<absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    if (parts.size() != 2) {
      continue;
    }
    const std::vector<absl::string_view> mount = absl::StrSplit(parts[0], ' ');
    const std::vector<absl::string_view> type = absl::StrSplit(parts[1], ' ');
    if (mount.size() > 4 && type.size() > 2 && type[0] == names.file_system &&
        HasController(type[2], names.controller)) {
      found.push_back({std::string(mount[3]), std::string(mount[4])});
    }
  }
  return found;
}

// The path of a group below where its hierarchy is mounted. Empty for what
// stands there itself, which is also all that is seen of a group elsewhere.
std::string PathBelow(const GroupMount& mount, absl::string_view group) {
  if (mount.top != "/" && !absl::ConsumePrefix(&group, mount.top)) {
    return "";
  }
  const bool inside =
      group.size() > 1 && group[0] == '/' && !absl::StartsWith(group, "/..");
  return inside ? std::string(group) : "";
}

std::optional<int64_t> RoomIn(const std::string& folder,
                              const GroupNames& names) {
  const auto text = [&](const char* name) {
    return ReadSystemFile(absl::StrCat(folder, "/", name));
  };
  const std::string used = text(names.used);
  const int64_t reclaimable =
      ReadFilePages(text("memory.stat"), names.stat_prefix);
  std::optional<int64_t> room;
  for (const char* const limit : names.limits) {
    if (limit[0] != '\0') {
      room = Lesser(room, ReadGroupRoom(text(limit), used, reclaimable));
    }
  }
  return room;
}

// The least that this process's group and those around it leave.
std::optional<int64_t> RoomOf(const std::string& root,
                              const GroupNames& names) {
  const std::optional<std::string> group =
      OwnGroup(ReadSystemFile(root + "/proc/self/cgroup"), names);
  if (!group.has_value()) {
    return std::nullopt;
  }
  std::optional<int64_t> least;
  for (const GroupMount& mount :
       MountsOf(ReadSystemFile(root + "/proc/self/mountinfo"), names)) {
    std::string path = PathBelow(mount, *group);
    while (true) {
      least = Lesser(least, RoomIn(root + mount.point + path, names));
      if (path.empty()) {
        break;
      }
      path.resize(path.rfind('/'));
    }
  }
  return least;
}

}  // namespace

int64_t ReadMemAvailable(absl::string_view meminfo) {
  for (absl::string_view line : absl::StrSplit(meminfo, '\n')) {
    if (!absl::ConsumePrefix(&line, "MemAvailable:")) {
      continue;
    }
    int64_t kib = 0;
    const bool whole = absl::ConsumeSuffix(&line, " kB") &&
                       absl::SimpleAtoi(line, &kib) && kib >= 0 &&
                       kib < INT64_MAX / 1024;
    return whole ? kib * 1024 : 0;
  }
  return 0;
}

int64_t ReadFilePages(absl::string_view stat, absl::string_view prefix) {
  int64_t sum = 0;
  for (absl::string_view line : absl::StrSplit(stat, '\n')) {
    int64_t bytes = 0;
    if (absl::ConsumePrefix(&line, prefix) &&
        (absl::ConsumePrefix(&line, "inactive_file ") ||
         absl::ConsumePrefix(&line, "active_file ")) &&
        absl::SimpleAtoi(line, &bytes) && bytes > 0 && bytes < kLimitMax) {
      sum += bytes;
    }
  }
  return sum;
}

std::optional<int64_t> ReadGroupRoom(absl::string_view limit,
                                     absl::string_view used,
                                     int64_t reclaimable) {
  int64_t most = 0;
  int64_t taken = 0;
  if (!absl::SimpleAtoi(limit, &most) || !absl::SimpleAtoi(used, &taken) ||
      most < 0 || most >= kLimitMax || taken < 0) {
    return std::nullopt;
  }
  return std::max<int64_t>(0, most - std::max<int64_t>(0, taken - reclaimable));
}

int64_t AvailableMemory(const std::string& root) {
  const int64_t machine =
      ReadMemAvailable(ReadSystemFile(root + "/proc/meminfo"));
  std::optional<int64_t> available =
      machine > 0 ? std::optional<int64_t>(machine) : std::nullopt;
  for (const GroupNames& names : kGroupNames) {
    available = Lesser(available, RoomOf(root, names));
  }
  return available.value_or(0);
}

}  // namespace millrace::cli
