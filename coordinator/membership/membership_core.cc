#include "coordinator/membership/membership_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"

namespace millrace::coordinator {
namespace {

// An epoch is tried again after 0.2 s, which is enough for the stream of a
// process that died to break and name it, then ever later up to 5 s.
// Longer than a broken stream takes to be noticed on a busy machine, shorter
// than the engine waits to learn who was lost.
constexpr absl::Duration kSuspicionDelay = absl::Milliseconds(300);
constexpr absl::Duration kActivateBackoff = absl::Milliseconds(200);
constexpr absl::Duration kActivateBackoffMax = absl::Seconds(5);
// An epoch that ran for so long shows that the ones before it do not matter.
constexpr absl::Duration kGoodEpoch = absl::Seconds(10);
// A model that cannot be loaded seldom heals by itself, but a disk or a mount
// may: 2 s, then up to a minute.
constexpr absl::Duration kLoadBackoff = absl::Seconds(2);
constexpr absl::Duration kLoadBackoffMax = absl::Minutes(1);

absl::Duration Backoff(absl::Duration first, absl::Duration most, int count) {
  return std::min(first * (1 << std::clamp(count, 0, 16)), most);
}

// "node-2" before "node-10".
bool NaturalLess(const std::string& a, const std::string& b) {
  size_t i = 0;
  size_t j = 0;
  const auto digits = [](const std::string& text, size_t at) {
    size_t end = at;
    while (end < text.size() &&
           absl::ascii_isdigit(static_cast<unsigned char>(text[end]))) {
      ++end;
    }
    return end - at;
  };
  while (i < a.size() && j < b.size()) {
    const size_t da = digits(a, i);
    const size_t db = digits(b, j);
    if (da > 0 && db > 0) {
      const std::string left = a.substr(i, da);
      const std::string right = b.substr(j, db);
      if (da != db || left != right) {
        return da != db ? da < db : left < right;
      }
      i += da;
      j += db;
    } else if (a[i] != b[j]) {
      return a[i] < b[j];
    } else {
      ++i;
      ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

bool SameProcess(const control::Register& a, const control::Register& b) {
  return a.pid == b.pid && transport::FormatEndpoint(a.data_address) ==
                               transport::FormatEndpoint(b.data_address);
}

}  // namespace

MembershipCore::MembershipCore(MembershipOptions options, Planner planner)
    : options_(std::move(options)), planner_(std::move(planner)) {}

std::vector<MembershipAction> MembershipCore::TakeActions() {
  return std::exchange(actions_, {});
}

const MembershipCore::Member* MembershipCore::Holder(size_t index) const {
  const auto found = members_.find(holders_[index]);
  return found == members_.end() ? nullptr : &found->second;
}

MembershipCore::Member* MembershipCore::FindSeated(size_t index) {
  const auto found = members_.find(holders_[index]);
  return found == members_.end() ? nullptr : &found->second;
}

size_t MembershipCore::SeatOf(SessionId session) const {
  const auto found = std::find(holders_.begin(), holders_.end(), session);
  return found == holders_.end()
             ? kNoSeat
             : static_cast<size_t>(found - holders_.begin());
}

void MembershipCore::OnMessage(absl::Duration now, SessionId session,
                               const control::WorkerMessage& message) {
  if (const auto* info = std::get_if<control::Register>(&message)) {
    OnRegister(now, session, *info);
    Advance(now);
    return;
  }
  const auto found = members_.find(session);
  if (found == members_.end()) {
    return;
  }
  Member& member = found->second;
  member.last_seen = now;
  if (const auto* heartbeat = std::get_if<control::Heartbeat>(&message)) {
    member.heartbeat = *heartbeat;
  } else if (const auto* loaded = std::get_if<control::Loaded>(&message)) {
    OnLoaded(member, *loaded);
  } else if (const auto* active = std::get_if<control::Active>(&message)) {
    member.active = member.active || active->epoch == epoch_;
  } else if (const auto* failed = std::get_if<control::Failed>(&message)) {
    OnFailed(now, member, *failed);
  } else if (const auto* ended = std::get_if<control::StageEnded>(&message)) {
    if (EpochUnderWay() && ended->epoch == epoch_ && member.seated &&
        !suspicion_.has_value()) {
      suspicion_ =
          Suspicion{member.info.name, ended->error, now + kSuspicionDelay};
    }
  }
  Advance(now);
}

void MembershipCore::OnRegister(absl::Duration now, SessionId session,
                                const control::Register& info) {
  if (members_.contains(session)) {
    const absl::Status reason =
        MakeError(absl::StatusCode::kInvalidArgument, info.name,
                  "registered twice on one stream");
    actions_.push_back(DropSession{session, reason});
    Remove(now, session, reason);
    return;
  }
  if (info.wire_version != control::kWireVersion) {
    actions_.push_back(DropSession{
        session,
        MakeError(absl::StatusCode::kFailedPrecondition, info.name,
                  absl::StrCat("speaks protocol version ", info.wire_version,
                               ", this coordinator ", control::kWireVersion),
                  "run the same version of millrace on every node")});
    return;
  }
  const auto old = std::find_if(
      members_.begin(), members_.end(),
      [&info](const auto& item) { return item.second.info.name == info.name; });
  if (old != members_.end()) {
    if (!SameProcess(old->second.info, info)) {
      actions_.push_back(DropSession{
          session, MakeError(absl::StatusCode::kAlreadyExists, info.name,
                             "another worker of this name is connected",
                             "give every worker a --name of its own")});
      return;
    }
    // Its old stream broke without a word.
    const absl::Status reason =
        MakeError(absl::StatusCode::kUnavailable, info.name, "connected anew");
    const SessionId old_session = old->first;
    actions_.push_back(DropSession{old_session, reason});
    Remove(now, old_session, reason);
  }
  Member member;
  member.session = session;
  member.info = info;
  member.last_seen = now;
  members_.emplace(session, std::move(member));
  planning_failed_ = false;
  actions_.push_back(
      SendTo{session, control::Welcome{options_.heartbeat, options_.lease}});
  actions_.push_back(ReportJoined{info.name});
}

void MembershipCore::OnLoaded(Member& member, const control::Loaded& loaded) {
  const size_t seat = SeatOf(member.session);
  if (seat == kNoSeat || loaded.load_key != load_keys_[seat]) {
    return;
  }
  member.load = Member::Load::kLoaded;
  member.loaded = loaded;
  member.failures = 0;
}

void MembershipCore::OnFailed(absl::Duration now, Member& member,
                              const control::Failed& failed) {
  if (failed.operation == control::Operation::kActivate) {
    if (failed.epoch == epoch_ && member.seated) {
      Break(now, member.info.name, failed.error);
    }
    return;
  }
  const size_t seat = SeatOf(member.session);
  if (seat == kNoSeat || failed.load_key != load_keys_[seat]) {
    return;
  }
  member.load = Member::Load::kNone;
  member.retry_at =
      now + Backoff(kLoadBackoff, kLoadBackoffMax, member.failures++);
  actions_.push_back(ReportStageFailed{member.info.name, failed.error});
}

void MembershipCore::OnSessionEnd(absl::Duration now, SessionId session,
                                  const absl::Status& reason) {
  Remove(now, session, reason);
  Advance(now);
}

void MembershipCore::Remove(absl::Duration now, SessionId session,
                            const absl::Status& reason) {
  const auto found = members_.find(session);
  if (found == members_.end()) {
    return;
  }
  const std::string name = found->second.info.name;
  members_.erase(found);
  planning_failed_ = false;
  if (const size_t seat = SeatOf(session); seat != kNoSeat) {
    holders_[seat] = 0;
    actions_.push_back(ReportLost{name, reason});
    Break(now, name, reason);
  }
}

void MembershipCore::OnLinksUp(absl::Duration now, uint64_t epoch) {
  if (epoch == epoch_ && phase_ == Phase::kActivating) {
    links_up_ = true;
    Advance(now);
  }
}

void MembershipCore::OnLinksFailed(absl::Duration now, uint64_t epoch,
                                   const absl::Status& reason) {
  if (epoch == epoch_) {
    Break(now, "", reason);
    Advance(now);
  }
}

void MembershipCore::OnStalled(absl::Duration now) {
  for (auto& [session, member] : members_) {
    member.last_seen = now;
  }
}

void MembershipCore::OnTick(absl::Duration now) {
  std::vector<SessionId> silent;
  for (const auto& [session, member] : members_) {
    if (member.last_seen + options_.lease <= now) {
      silent.push_back(session);
    }
  }
  for (const SessionId session : silent) {
    const absl::Status reason =
        MakeError(absl::StatusCode::kUnavailable, "control stream",
                  absl::StrCat("no heartbeat for ",
                               absl::FormatDuration(options_.lease)));
    actions_.push_back(DropSession{session, reason});
    Remove(now, session, reason);
  }
  if (phase_ == Phase::kActivating && now >= activation_deadline_) {
    Break(now, "",
          MakeError(absl::StatusCode::kDeadlineExceeded, "pipeline",
                    absl::StrCat("not active in time: ", WaitsFor())));
  }
  if (suspicion_.has_value() && now >= suspicion_->until) {
    const Suspicion suspicion = *suspicion_;
    Break(now, suspicion.worker, suspicion.reason);
  }
  if (phase_ == Phase::kReady && now >= ready_since_ + kGoodEpoch) {
    breaks_ = 0;
  }
  Advance(now);
}

absl::Duration MembershipCore::NextTick() const {
  absl::Duration next = absl::InfiniteDuration();
  for (const auto& [session, member] : members_) {
    next = std::min(next, member.last_seen + options_.lease);
    if (member.seated && member.load == Member::Load::kNone) {
      next = std::min(next, member.retry_at);
    }
  }
  if (phase_ == Phase::kActivating) {
    next = std::min(next, activation_deadline_);
  }
  if (suspicion_.has_value()) {
    next = std::min(next, suspicion_->until);
  }
  if (phase_ == Phase::kAssembling && AllSeatsLoaded()) {
    next = std::min(next, activate_not_before_);
  }
  return next;
}

void MembershipCore::Advance(absl::Duration now) {
  if (phase_ == Phase::kGathering) {
    Plan();
  }
  if (phase_ == Phase::kGathering) {
    return;
  }
  FillSeats();
  LoadStages(now);
  BringUpIfAssembled(now);
  if (phase_ == Phase::kActivating && links_up_) {
    for (size_t i = 0; i < holders_.size(); ++i) {
      const Member* member = Holder(i);
      if (member == nullptr || !member->active) {
        return;
      }
    }
    phase_ = Phase::kReady;
    ready_since_ = now;
    actions_.push_back(BecomeReady{epoch_});
  }
}

void MembershipCore::Plan() {
  if (planning_failed_ ||
      static_cast<int>(members_.size()) < options_.num_workers) {
    return;
  }
  std::vector<control::Register> workers;
  for (const auto& [session, member] : members_) {
    workers.push_back(member.info);
  }
  std::sort(workers.begin(), workers.end(), [](const auto& a, const auto& b) {
    return NaturalLess(a.name, b.name);
  });
  absl::StatusOr<ClusterPlan> plan = planner_(workers);
  if (plan.ok() && plan->seats.empty()) {
    plan = absl::InternalError("the planner returned no stages");
  }
  if (!plan.ok()) {
    planning_failed_ = true;
    planning_failure_ = std::string(plan.status().message());
    actions_.push_back(ReportPlanFailed{std::move(plan).status()});
    return;
  }
  plan_ = *std::move(plan);
  holders_.assign(plan_.seats.size(), 0);
  load_keys_.clear();
  for (const StageSeat& seat : plan_.seats) {
    load_keys_.push_back(control::LoadKeyOf(options_.model_digest, seat.stage));
  }
  phase_ = Phase::kAssembling;
  actions_.push_back(ReportPlanned{});
}

bool MembershipCore::Fits(const Member& member, const StageSeat& seat) const {
  return member.info.memory_bytes == 0 ||
         member.info.memory_bytes >= seat.memory_bytes;
}

void MembershipCore::FillSeats() {
  const auto seat_member = [this](Member& member, size_t index) {
    holders_[index] = member.session;
    member.seated = true;
    member.load = Member::Load::kNone;
  };
  // Names first, so that a worker that comes back finds its own weights.
  for (const bool by_name : {true, false}) {
    for (auto& [session, member] : members_) {
      for (size_t i = 0; i < holders_.size() && !member.seated; ++i) {
        const StageSeat& seat = plan_.seats[i];
        const bool right =
            by_name ? member.info.name == seat.worker : Fits(member, seat);
        if (holders_[i] == 0 && right) {
          seat_member(member, i);
        }
      }
    }
  }
}

void MembershipCore::LoadStages(absl::Duration now) {
  for (size_t i = 0; i < holders_.size(); ++i) {
    Member* member = FindSeated(i);
    if (member == nullptr || member->load != Member::Load::kNone ||
        now < member->retry_at) {
      continue;
    }
    // A worker that holds the stage already answers at once.
    member->load = Member::Load::kLoading;
    actions_.push_back(
        SendTo{member->session,
               control::Load{load_keys_[i], options_.model_path,
                             options_.model_digest, plan_.seats[i].stage}});
  }
}

bool MembershipCore::AllSeatsLoaded() const {
  for (size_t i = 0; i < holders_.size(); ++i) {
    const Member* member = Holder(i);
    if (member == nullptr || member->load != Member::Load::kLoaded) {
      return false;
    }
  }
  return true;
}

void MembershipCore::BringUpIfAssembled(absl::Duration now) {
  if (phase_ != Phase::kAssembling || now < activate_not_before_ ||
      !AllSeatsLoaded()) {
    return;
  }
  ++epoch_;
  phase_ = Phase::kActivating;
  links_up_ = false;
  activation_deadline_ = now + options_.activation_timeout;
  for (auto& [session, member] : members_) {
    member.active = false;
  }
  actions_.push_back(BringUp{epoch_});
}

void MembershipCore::Break(absl::Duration now, const std::string& worker,
                           const absl::Status& reason) {
  suspicion_.reset();
  if (!EpochUnderWay()) {
    return;
  }
  if (phase_ == Phase::kReady && now >= ready_since_ + kGoodEpoch) {
    breaks_ = 0;
  }
  actions_.push_back(TakeDown{epoch_, phase_ == Phase::kReady, worker, reason});
  for (size_t i = 0; i < holders_.size(); ++i) {
    if (const Member* member = Holder(i)) {
      actions_.push_back(SendTo{member->session, control::Deactivate{epoch_}});
    }
  }
  phase_ = Phase::kAssembling;
  activate_not_before_ =
      now + Backoff(kActivateBackoff, kActivateBackoffMax, breaks_++);
}

std::string MembershipCore::WaitsFor() const {
  if (phase_ == Phase::kGathering) {
    return planning_failed_ ? absl::StrCat("workers on which the model fits: ",
                                           planning_failure_)
                            : absl::StrCat("workers: ", members_.size(), " of ",
                                           options_.num_workers, " are there");
  }
  if (phase_ == Phase::kReady) {
    return "";
  }
  std::vector<std::string> parts;
  for (size_t i = 0; i < holders_.size(); ++i) {
    const Member* member = Holder(i);
    const std::string layers =
        absl::StrCat("layers ", plan_.seats[i].stage.first_layer, " to ",
                     plan_.seats[i].stage.last_layer);
    if (member == nullptr) {
      parts.push_back(absl::StrCat("worker ", plan_.seats[i].worker, " (",
                                   layers, ") to connect"));
    } else if (member->load != Member::Load::kLoaded) {
      parts.push_back(
          absl::StrCat("worker ", member->info.name, " to load ", layers));
    } else if (!member->active) {
      parts.push_back(
          absl::StrCat("worker ", member->info.name, " to be linked"));
    }
  }
  return parts.empty() ? "the coordinator's own links"
                       : absl::StrJoin(parts, ", ");
}

}  // namespace millrace::coordinator
