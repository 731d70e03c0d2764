package failure

// ReasonMeaning tells what a reason means, and what to do about it. The page docs/user/errors.md is written from all of them.
type ReasonMeaning struct{ Reason, Meaning, Remedy string }

// Reasons are the meanings of all reasons of ours. Beside them stand codes of Gardener, such as ERR_INFRA_QUOTA_EXCEEDED, as they came.
func Reasons() []ReasonMeaning {
	return []ReasonMeaning{
		{ReasonInternal, "a fault of the broker or of the Provisioner", "the log tells more: look for the id of the operation"},
		{ReasonTimeout, "something did not come to its end in time", "`ebctl operation explain` tells what was waited for; then retry"},
		{ReasonHTTPStatus, "a system answered in a way that cannot be meant", "look at that system; the operation tries again by itself"},
		{ReasonNotFound, "a row that the operation needs is gone", "nothing is left to do for it: delete the instance if it is still there"},
		{ReasonAlreadyExists, "something of the same name is there already", "remove what the text names, then retry"},
		{ReasonConflict, "something changed at the same moment", "nothing: the operation tries again by itself; else retry"},
		{ReasonClusterNotFound, "the cluster is not in Gardener", "if nobody has removed it by hand, look into Gardener's log"},
		{ReasonSystemAway, "a system has not answered several times and is not called for now", "repair that system: the operation goes on by itself"},
		{ReasonBusy, "too many calls to a system are under way", "nothing: the operation tries again by itself"},
		{ReasonDirectorNilResponse, "Director answered without what it was asked for", "look at Director; the operation tries again by itself"},
		{ReasonDirectorIDMismatch, "Director answered about another runtime", "look at Director; the operation tries again by itself"},
	}
}
