// Package upgrading contains the common parts of the processes upgradekyma and upgradecluster: the interfaces of their steps, the
// end of an upgrade whose runtime is being removed, and the record of the result.
//
// An upgrade never delays the removal of an instance. Each step that calls another system first checks whether the runtime is
// being removed. If so, the remaining steps do nothing, and the operation succeeds as preempted. A deletion therefore does not
// cancel a running upgrade, but makes it due. If the change was complete by then, the last step still records it.
package upgrading
