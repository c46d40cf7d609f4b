// Long functions that end early when their run is stopped.

#pragma once

namespace lade {

// Whether the stage is being stopped in whose call of a plain function this thread is. False
// outside of such a call, and on threads that the function has started.
//
// A run that is stopped waits for the functions that it has called. One that takes longer than some
// milliseconds asks between its steps, and throws error(stopped):
//
//   for (const auto& frame : frames) {
//     if (lade::stop_requested()) throw lade::error(lade::errc::stopped, "embed " + name);
//     ...
//
// Any thread. Costs a few nanoseconds.
bool stop_requested() noexcept;

}  // namespace lade
