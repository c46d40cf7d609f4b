// All of lade's core: coroutines, the runtime, pipelines and their stages.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/batch.hpp>
#include <lade/buffer.hpp>
#include <lade/channel.hpp>
#include <lade/context.hpp>
#include <lade/cut.hpp>
#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/failure.hpp>
#include <lade/filter.hpp>
#include <lade/from.hpp>
#include <lade/lineage.hpp>
#include <lade/map.hpp>
#include <lade/merge.hpp>
#include <lade/pipeline.hpp>
#include <lade/random.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sample.hpp>
#include <lade/scope.hpp>
#include <lade/semaphore.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>
#include <lade/sleep.hpp>
#include <lade/state.hpp>
#include <lade/stats.hpp>
#include <lade/sync_wait.hpp>
#include <lade/task.hpp>
#include <lade/tensor.hpp>
#include <lade/this_context.hpp>
#include <lade/thread_pool.hpp>
#include <lade/through.hpp>
#include <lade/trace.hpp>
#include <lade/when_all.hpp>
