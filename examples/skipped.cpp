#include "skipped.hpp"

#include "report.hpp"

#include <lade/error.hpp>
#include <lade/printable.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <fstream>

// "open a.jpg: No such file or directory" without the operation and the file.
static std::string reason_of(const std::string& message, const std::string& item) {
  auto named = item.empty() ? message.npos : message.find(item + ": ");
  return named == message.npos ? message : message.substr(named + item.size() + 2);
}

void skipped::record_directories(const std::vector<std::string>& errors) {
  std::ofstream log;
  if (!log_.empty() && !errors.empty()) log.open(log_, std::ios::app);
  for (auto& error : errors) {
    auto name = error.substr(error.find(' ') + 1, error.rfind(": ") - error.find(' ') - 1);
    ++directories_;
    ++reasons_[reason_of(error, name)];
    remember(name);
    log << lade::to_json(lade::failure_record{"list", name, error, 1, {}}) << '\n';
  }
  if (log.is_open() && !log.flush()) lade::raise(errno, "write " + log_);
}

void skipped::record(const lade::failure_record& failure) {
  ++times_;
  if (!items_.insert(failure.item).second) return;
  ++reasons_[reason_of(failure.what, failure.item)];
  remember(failure.item);
}

void skipped::remember(const std::string& name) {
  last_.push_back(name);
  if (last_.size() > most_names) last_.pop_front();
}

void skipped::print() const {
  if (last_.empty()) return;
  auto text = count_of(items_.size(), one_, many_);
  if (times_ > items_.size()) text += fmt::format(", {} times", grouped(times_));
  if (directories_ > 0)
    text += fmt::format(", and {}", count_of(directories_, "directory", "directories"));
  print_row("skipped", text);
  for (auto& [reason, count] : reasons_)
    print_row("", fmt::format("{:>7}  {}", grouped(count), lade::printable(reason)));
  auto all = items_.size() + directories_;
  print_row(all > last_.size() ? "the last" : "namely", lade::printable(last_.front()));
  for (std::size_t i = 1; i < last_.size(); ++i) print_row("", lade::printable(last_[i]));
  if (!log_.empty())
    print_row("all of them", lade::printable(log_));
  else if (all > last_.size())
    print_row("all of them", "with --failure-log FILE");
}
