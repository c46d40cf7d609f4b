// For long functions of stages, which should end early when their run is stopped.

#pragma once

namespace lade {

// Whether the stage that called the current plain function is asked to stop. False outside such a
// call, and on threads that the function has started.
//
// A stopped run waits for the functions that its stages have called. A function that takes longer
// than a few milliseconds should test between its steps, and throw error(stopped):
//
//   for (const auto& frame : frames) {
//     if (lade::stop_requested()) throw lade::error(lade::errc::stopped, "embed " + name);
//     ...
//
// Any thread. Costs a few nanoseconds.
bool stop_requested() noexcept;

}  // namespace lade
