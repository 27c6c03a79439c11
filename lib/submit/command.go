// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import "iter"

// kind says how the value of a command becomes an attribute.
type kind uint8

const (
	asExpr     kind = iota // a ClassAd expression
	asString               // text
	asUnquoted             // text, double quotes around it are taken off
	asList                 // text, a list written with commas
	asBool                 // true or false
	asInt                  // an integer, perhaps as an expression
	asPath                 // a file name, made absolute by the initialdir
	special                // read by a function of its own
	refused                // known, but this program cannot do it
)

// command is one submit command.
type command struct {
	name string // in lower case
	attr string // the job attribute, which is also a name of the command
	kind kind
	why  string // for refused: what would be needed
}

// commands is every submit command that is understood, in the order in which
// the attributes are set.
var commands = [...]command{
	{"batch_name", "JobBatchName", asUnquoted, ""},
	{"batch_id", "JobBatchId", asUnquoted, ""},
	{"description", "JobDescription", asString, ""},
	{"log", "UserLog", asPath, ""},
	{"log_xml", "UserLogUseXML", refused, "an event log in XML"},
	{"dagman_log", "DAGManNodesLog", refused, "DAGMan"},
	{"priority", "JobPrio", asInt, ""},
	{"prio", "JobPrio", asInt, ""},
	{"core_size", "CoreSize", asInt, ""},
	{"stack_size", "StackSize", asExpr, ""},
	{"job_lease_duration", "JobLeaseDuration", asExpr, ""},
	{"max_job_retirement_time", "MaxJobRetirementTime", asExpr, ""},
	{"job_max_vacate_time", "JobMaxVacateTime", asExpr, ""},
	{"want_graceful_removal", "WantGracefulRemoval", asExpr, ""},
	{"keep_claim_idle", "KeepClaimIdle", asExpr, ""},
	{"next_job_start_delay", "NextJobStartDelay", asExpr, ""},
	{"allowed_job_duration", "AllowedJobDuration", asExpr, ""},
	{"allowed_execute_duration", "AllowedExecuteDuration", asExpr, ""},
	{"job_ad_information_attrs", "JobAdInformationAttrs", asString, ""},
	{"ulog_execute_attrs", "UserLogExecuteEventAttrs", asString, ""},
	{"job_machine_attrs", "JobMachineAttrs", asString, ""},
	{"job_machine_attrs_history_length", "JobMachineAttrsHistoryLength", asInt, ""},
	{"notify_user", "NotifyUser", asString, ""},
	{"email_attributes", "EmailAttributes", asList, ""},
	{"mount_under_scratch", "MountUnderScratch", asUnquoted, ""},
	{"want_io_proxy", "WantIOProxy", asBool, ""},
	{"want_job_networking", "WantJobNetworking", asBool, ""},
	{"starter_debug", "JobStarterDebug", asUnquoted, ""},
	{"starter_log", "JobStarterLog", asPath, ""},
	{"remote_initialdir", "RemoteIwd", asString, ""},
	{"run_as_owner", "RunAsOwner", asBool, ""},
	{"load_profile", "LoadProfile", asBool, ""},
	{"primary_unix_group", "PrimaryUnixGroup", asString, ""},
	{"encrypt_execute_directory", "EncryptExecuteDirectory", asBool, ""},
	{"max_transfer_input_mb", "MaxTransferInputMB", asExpr, ""},
	{"max_transfer_output_mb", "MaxTransferOutputMB", asExpr, ""},
	{"preserve_relative_paths", "PreserveRelativePaths", asBool, ""},
	{"erase_output_and_error_on_restart", "EraseOutputAndErrorOnRestart", asBool, ""},
	{"append_files", "AppendFiles", asString, ""},
	{"submit_event_notes", "SubmitEventNotes", asString, ""},
	{"submit_event_user_notes", "SubmitEventUserNotes", asString, ""},
	{"match_list_length", "LastMatchListLength", asInt, ""},
	{"dagman_job_id", "DAGManJobId", asInt, ""},
	{"periodic_hold", "PeriodicHold", asExpr, ""},
	{"periodic_hold_reason", "PeriodicHoldReason", asExpr, ""},
	{"periodic_hold_subcode", "PeriodicHoldSubCode", asExpr, ""},
	{"periodic_release", "PeriodicRelease", asExpr, ""},
	{"periodic_remove", "PeriodicRemove", asExpr, ""},
	{"periodic_vacate", "PeriodicVacate", asExpr, ""},
	{"on_exit_hold_reason", "OnExitHoldReason", asExpr, ""},
	{"on_exit_hold_subcode", "OnExitHoldSubCode", asExpr, ""},
	{"leave_in_queue", "LeaveJobInQueue", asExpr, ""},

	{"universe", "JobUniverse", special, ""},
	{"executable", "Cmd", special, ""},
	{"shell", "", special, ""},
	{"arguments", "Args", special, ""},
	{"arguments2", "", special, ""},
	{"allow_arguments_v1", "", special, ""},
	{"environment", "", special, ""},
	{"environment2", "", special, ""},
	{"env", "", special, ""},
	{"allow_environment_v1", "", special, ""},
	{"getenv", "", special, ""},
	{"get_env", "", special, ""},
	{"initialdir", "Iwd", special, ""},
	{"initial_dir", "job_iwd", special, ""},
	{"input", "stdin", special, ""},
	{"output", "stdout", special, ""},
	{"error", "stderr", special, ""},
	{"transfer_input", "TransferIn", special, ""},
	{"transfer_output", "TransferOut", special, ""},
	{"transfer_error", "TransferErr", special, ""},
	{"stream_input", "StreamIn", special, ""},
	{"stream_output", "StreamOut", special, ""},
	{"stream_error", "StreamErr", special, ""},
	{"transfer_executable", "TransferExecutable", special, ""},
	{"transfer_input_files", "TransferInputFiles", special, ""},
	{"transfer_output_files", "TransferOutputFiles", special, ""},
	{"transfer_output_remaps", "TransferOutputRemaps", special, ""},
	{"should_transfer_files", "ShouldTransferFiles", special, ""},
	{"when_to_transfer_output", "WhenToTransferOutput", special, ""},
	{"request_cpus", "RequestCpus", special, ""},
	{"request_memory", "RequestMemory", special, ""},
	{"request_disk", "RequestDisk", special, ""},
	{"request_gpus", "RequestGPUs", special, ""},
	{"require_gpus", "RequireGPUs", special, ""},
	{"gpus_minimum_capability", "GPUsMinCapability", special, ""},
	{"gpus_maximum_capability", "GPUsMaxCapability", special, ""},
	{"gpus_minimum_memory", "GPUsMinMemory", special, ""},
	{"gpus_minimum_runtime", "GPUsMinRuntime", special, ""},
	{"image_size", "ImageSize", special, ""},
	{"disk_usage", "DiskUsage", special, ""},
	{"requirements", "", special, ""},
	{"rank", "preferences", special, ""},
	{"kill_sig", "KillSig", special, ""},
	{"remove_kill_sig", "RemoveKillSig", special, ""},
	{"hold_kill_sig", "HoldKillSig", special, ""},
	{"kill_sig_timeout", "KillSigTimeout", special, ""},
	{"hold", "", special, ""},
	{"notification", "JobNotification", special, ""},
	{"max_retries", "JobMaxRetries", special, ""},
	{"retry_until", "", special, ""},
	{"success_exit_code", "JobSuccessExitCode", special, ""},
	{"on_exit_remove", "OnExitRemove", special, ""},
	{"on_exit_hold", "OnExitHold", special, ""},
	{"concurrency_limits", "", special, ""},
	{"concurrency_limits_expr", "", special, ""},
	{"accounting_group", "", special, ""},
	{"accounting_group_user", "", special, ""},
	{"project_name", "ProjectName", special, ""},
	{"nice_user", "NiceUser", special, ""},
	{"skip_filechecks", "", special, ""},

	{"docker_image", "DockerImage", refused, "a container runtime"},
	{"container_image", "ContainerImage", refused, "a container runtime"},
	{"container_service_names", "ContainerServiceNames", refused, "a container runtime"},
	{"container_target_dir", "ContainerTargetDir", refused, "a container runtime"},
	{"transfer_container", "TransferContainer", refused, "a container runtime"},
	{"docker_network_type", "DockerNetworkType", refused, "a container runtime"},
	{"docker_pull_policy", "DockerPullPolicy", refused, "a container runtime"},
	{"docker_override_entrypoint", "DockerOverrideEntrypoint", refused, "a container runtime"},
	{"grid_resource", "GridResource", refused, "the grid universe"},
	{"vm_type", "JobVMType", refused, "the vm universe"},
	{"vm_memory", "JobVMMemory", refused, "the vm universe"},
	{"jar_files", "JarFiles", refused, "the java universe"},
	{"java_vm_args", "JavaVMArgs", refused, "the java universe"},
	{"machine_count", "MachineCount", refused, "the parallel universe"},
	{"node_count", "NodeCount", refused, "the parallel universe"},
	{"tool_daemon_cmd", "ToolDaemonCmd", refused, "tool daemons"},
	{"suspend_job_at_exec", "SuspendJobAtExec", refused, "tool daemons"},
	{"deferral_time", "DeferralTime", refused, "deferred jobs"},
	{"deferral_window", "DeferralWindow", refused, "deferred jobs"},
	{"deferral_prep_time", "DeferralPrepTime", refused, "deferred jobs"},
	{"cron_window", "CronWindow", refused, "cron jobs"},
	{"cron_prep_time", "CronPrepTime", refused, "cron jobs"},
	{"cron_minute", "CronMinutes", refused, "cron jobs"},
	{"cron_hour", "CronHours", refused, "cron jobs"},
	{"cron_day_of_month", "CronDaysOfMonth", refused, "cron jobs"},
	{"cron_month", "CronMonths", refused, "cron jobs"},
	{"cron_day_of_week", "CronDaysOfWeek", refused, "cron jobs"},
	{"x509userproxy", "", refused, "grid credentials"},
	{"use_x509userproxy", "", refused, "grid credentials"},
	{"use_scitokens", "", refused, "credentials for the job"},
	{"scitokens_file", "", refused, "credentials for the job"},
	{"use_scitoken", "", refused, "credentials for the job"},
	{"use_oauth_services", "", refused, "credentials for the job"},
	{"useoauthservices", "", refused, "credentials for the job"},
	{"output_destination", "OutputDestination", refused, "transfer of the output to a URL"},
	{"output_directory", "", refused, "transfer of the output to a URL"},
	{"aws_access_key_id_file", "", refused, "transfer of URLs"},
	{"aws_secret_access_key_file", "", refused, "transfer of URLs"},
	{"s3_access_key_id_file", "", refused, "transfer of URLs"},
	{"s3_secret_access_key_file", "", refused, "transfer of URLs"},
	{"gs_access_key_id_file", "", refused, "transfer of URLs"},
	{"gs_secret_access_key_file", "", refused, "transfer of URLs"},
	{"transfer_plugins", "TransferPlugins", refused, "transfer plugins of the job"},
	{"public_input_files", "PublicInputFiles", refused, "public input files"},
	{"transfer_common_input", "CommonInputFiles", refused, "common input files"},
	{"encrypt_input_files", "EncryptInputFiles", refused, "encryption of single files"},
	{"encrypt_output_files", "EncryptOutputFiles", refused, "encryption of single files"},
	{"max_materialize", "JobMaterializeLimit", refused, "late materialization"},
	{"max_idle", "JobMaterializeMaxIdle", refused, "late materialization"},
	{"materialize_max_idle", "", refused, "late materialization"},
	{"on_evict_checks", "TransformOnEvict", refused, "changes of the job at its eviction"},
	{"retry_request_memory", "", refused, "changes of the job at its eviction"},
	{"retry_request_memory_max", "", refused, "changes of the job at its eviction"},
	{"retry_request_memory_increase", "", refused, "changes of the job at its eviction"},
	{"retry_request_disk", "", refused, "changes of the job at its eviction"},
	{"checkpoint_exit_code", "SuccessCheckpointExitCode", refused, "jobs that take checkpoints"},
	{"transfer_checkpoint_files", "TransferCheckpoint", refused, "jobs that take checkpoints"},
	{"checkpoint_destination", "CheckpointDestination", refused, "jobs that take checkpoints"},
	{"noop_job", "IsNoopJob", refused, "jobs that are not run"},
	{"skip_if_dataflow", "SkipIfDataflow", refused, "jobs that are skipped"},
	{"manifest", "JobManifestDesired", refused, "a manifest of the job's files"},
	{"jobset", "JobSetName", refused, "job sets"},
	{"cuda_version", "", refused, "a check of the CUDA version"},
}

// simpleCommands are those that are set without further thought.
func simpleCommands() iter.Seq[*command] {
	return func(yield func(*command) bool) {
		for i := range commands {
			if commands[i].kind < special && !yield(&commands[i]) {
				return
			}
		}
	}
}

// refusedCommands are those that are known but not supported.
func refusedCommands() iter.Seq[*command] {
	return func(yield func(*command) bool) {
		for i := range commands {
			if commands[i].kind == refused && !yield(&commands[i]) {
				return
			}
		}
	}
}

func commandNames() []string {
	names := make([]string, len(commands))
	for i, c := range commands {
		names[i] = c.name
	}
	return names
}
