// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import "strings"

// kind is the type of an attribute.
type kind uint8

const (
	kindAny kind = iota
	kindNumber
	kindString
	kindBool
)

func (k kind) outcome() outcome {
	switch k {
	case kindNumber:
		return isNumber
	case kindString:
		return isString
	case kindBool:
		return boolean
	}
	return anything
}

// attribute is one that HTCondor publishes or reads.
type attribute struct {
	name   string
	kind   kind
	always bool // in every slot's ad from the start
}

// attributes are those known, by name in lower case.
type attributes struct {
	slot, job map[string]attribute
}

// known returns the tables.
func known() *attributes {
	a := &attributes{slot: map[string]attribute{}, job: map[string]attribute{}}
	fill := func(to map[string]attribute, text string, always bool) {
		for word := range strings.FieldsSeq(text) {
			name, letter, _ := strings.Cut(word, "/")
			k := kindAny
			switch letter {
			case "n":
				k = kindNumber
			case "s":
				k = kindString
			case "b":
				k = kindBool
			}
			to[strings.ToLower(name)] = attribute{name, k, always}
		}
	}
	fill(a.slot, slotSometimes, false)
	fill(a.slot, slotAlways, true)
	fill(a.job, jobAttributes, false)
	return a
}

// The attributes, each with its type: n number, s string, b boolean, x any.
const (
	slotAlways = `
Activity/s Arch/s ClockDay/n ClockMin/n CondorLoadAvg/n CondorPlatform/s CondorVersion/s CpuBusyTime/n CpuIsBusy/b Cpus/n CurrentRank/n
CurrentTime/n DetectedCpus/n DetectedMemory/n Disk/n EnteredCurrentActivity/n EnteredCurrentState/n FileSystemDomain/s KeyboardIdle/n
LastBenchmark/n LoadAvg/n Machine/s Memory/n MyCurrentTime/n MyType/s Name/s OpSys/s OpSysAndVer/s OpSysLegacy/s OpSysLongName/s
OpSysMajorVer/n OpSysName/s OpSysShortName/s OpSysVer/n SlotID/n SlotType/s SlotTypeID/n State/s TotalCondorLoadAvg/n TotalCpus/n
TotalDisk/n TotalLoadAvg/n TotalMemory/n TotalSlotCpus/n TotalSlotDisk/n TotalSlotMemory/n TotalSlots/n TotalVirtualMemory/n UidDomain/s
VirtualMemory/n`

	slotSometimes = `
AcceptedWhileDraining/b AccountingGroup/s AssignedGPUs/s AvailableGPUs/x BackfillSlot/b BadputCausedByDraining/b BadputCausedByPreemption/b
BoardTempC/n BrokenSlotCpus/n BrokenSlotDisk/n BrokenSlotMemory/n CanHibernate/b Capability/n CgroupEnforced/b CheckpointPlatform/s
ChildAccountingGroup/x ChildActivity/x ChildClaimIds/x ChildCpus/x ChildCurrentRank/x ChildDisk/x ChildDSlotId/x ChildEnteredCurrentState/x
ChildMemory/x ChildName/x ChildRemoteOwner/x ChildRemoteUser/x ChildRetirementTimeRemaining/x ChildState/x ClaimEndTime/n ClaimId/s
CleanupCategoryCounts/x ClientMachine/s ClockMhz/n CloudImage/s CloudInstanceID/s CloudInterruptible/s CloudPlatform/s CloudProvider/s
CloudRegion/s CloudVMType/s CloudZone/s CODClaims/s COLLECTOR_HOST_STRING/s ComputeUnits/n ConcurrencyLimits/s CondorScratchDir/x
ConsoleIdle/n CoresPerCU/n CpuBusy/x CpuCacheSize/n CpuFamily/n CpuModelNumber/n DedicatedScheduler/s DetectedDisk/n
DeviceGPUsAverageUsage/n DeviceGPUsMemoryPeakUsage/n DeviceName/s DeviceUuid/s DieTempC/n DiskQuantum/n DockerCachedImageSize/n
DockerCachedImageSizeMb/n DockerNetworks/s DockerOfflineReason/s DockerVersion/s DotNetVersions/s Draining/b DrainingRequestId/s
DrainReason/s DriverVersion/n DSlotId/n DynamicSlot/b ECCEnabled/b EccErrorsDoubleBit/n EccErrorsSingleBit/n ExecutableSize/n
ExecuteVolume/s ExpectedMachineGracefulDrainingBadput/n ExpectedMachineGracefulDrainingCompletion/n ExpectedMachineQuickDrainingBadput/n
ExpectedMachineQuickDrainingCompletion/n FanSpeedPct/n GlobalJobId/s GlobalMemoryMb/n GPUs/n HardwareAddress/s has_avx/b has_avx2/b
has_avx512dnni/b has_avx512dq/b has_avx512f/b has_sse4_1/b has_sse4_2/b has_ssse3/b HasCommonFilesTransfer/n HasContainer/b HasDocker/b
HasDockerURL/b HasEncryptExecuteDirectory/b HasFileTransfer/b HasFileTransferPluginMethods/s HasIOProxy/b HasJava/b HasJICLocalConfig/b
HasJICLocalStdin/b HasJobDeferral/b HasJobNetworking/b HasMPI/b HasPerFileEncryption/b HasPidNamespaces/b HasReconnect/b
HasRotationalScratch/b HasSandboxImage/b HasSelfCheckpointTransfers/b HasSIF/b HasSingularity/b HasSshd/b HasStartDaemonAd/b HasTDP/b
HasUserNamespaces/b HasVM/b HealthExprs/x HealthFactor/n Healthy/b HibernationLevel/n HibernationMethod/s HibernationRawMask/n
HibernationState/s HibernationSupportedStates/s Id/s ImageSize/n IsDataSlot/b IsDirectAttach/s IsEnforcingDiskUsage/b IsLocalStartd/b
IsOwner/b IsWakeAble/b IsWakeEnabled/b IsWakeOnLanEnabled/b IsWakeOnLanSupported/b JavaSpecificationVersion/s JavaVendor/s JavaVersion/s
JobId/s JobStart/n JobUniverse/n JobVM_VCPUS/n KFlops/n LastDrainStartTime/n LastDrainStopTime/n LastFetchWorkCompleted/n
LastFetchWorkSpawned/n LastHeardFrom/n LastPeriodicCheckpoint/n LastUpdate/n LocalCredd/s LvmBackingStore/s LvmIsThinProvisioning/b
LvmUsingLoopback/b MachineLastMatchTime/n MachineMaxVacateTime/x MachineResources/s MaxClaimTime/n MaxJobRetirementTime/x
MaxSupportedVersion/n Microarch/s Mips/n MyAddress/s NextFetchWorkDelay/n NiceUser/b NumClaims/n NumCODClaims/n NumDynamicSlots/n
NvidiaDriver/s Offline/b OfflineUniverses/x OpenCLVersion/s ParallelSchedulingGroup/s ParentSlotId/n PartitionableSlot/b
PreemptingAccountingGroup/s PreemptingConcurrencyLimits/s PreemptingOwner/s PreemptingRank/n PreemptingUser/s PslotRollupInformation/b
PublicClaimId/s Rank/x RemoteAutoregroup/b RemoteGroup/s RemoteNegotiatingGroup/s RemoteOwner/s RemoteProject/s RemoteScheddName/s
RemoteUser/s Requirements/x RetirementTimeRemaining/n RunningCODJob/b RuntimeVersion/s SingularityOfflineReason/s
SingularityUserNamespaces/b SingularityVersion/s SlotBrokenCode/n SlotBrokenReason/s SlotMergeConstraint/x SlotName/s SlotWeight/x Start/x
StartdIpAddr/s StarterAbilityList/s StarterIpAddr/s StarterPid/n SubnetMask/s TargetType/s TotalClaimRunTime/n TotalClaimSuspendTime/n
TotalJobRunTime/n TotalJobSuspendTime/n TotalMachineDrainingBadput/n TotalMachineDrainingUnclaimedTime/n TotalTimeBackfillBusy/n
TotalTimeBackfillIdle/n TotalTimeBackfillKilling/n TotalTimeClaimedBusy/n TotalTimeClaimedCleaning/n TotalTimeClaimedIdle/n
TotalTimeClaimedRetiring/n TotalTimeClaimedSuspended/n TotalTimeMatchedIdle/n TotalTimeOwnerIdle/n TotalTimePreemptingKilling/n
TotalTimePreemptingVacating/n TotalTimeUnclaimedBenchmarking/n TotalTimeUnclaimedIdle/n Unhibernate/x UtsnameMachine/s UtsnameNodename/s
UtsnameRelease/s UtsnameSysname/s UtsnameVersion/s VirtualMachineID/n VM_All_Guest_IPs/s VM_All_Guest_Macs/s VM_AvailNum/n VM_Guest_IP/s
VM_Guest_Mac/s VM_Guest_Mem/n VM_HardwareVT/b VM_Memory/n VM_Networking/b VM_Networking_Types/s VM_Type/s VMOfflineReason/s VMOfflineTime/n
WakeOnLanEnabledFlags/s WakeOnLanSupportedFlags/s WindowsBuildNumber/n WindowsMajorVersion/n WindowsMinorVersion/n WindowsProductType/n
WindowsServicePackMajorVersion/n WindowsServicePackMinorVersion/n WithinResourceLimits/x`

	jobAttributes = `
AccountingGroup/s AcctGroup/s AllowedExecuteDuration/n AllowedJobDuration/n Args/s Arguments/s BlockReadKbytes/n BlockReads/n
BlockWriteKbytes/n BlockWrites/n BytesRecvd/n BytesSent/n CheckpointDestination/s CheckpointNumber/n CkptArch/s CkptOpSys/s ClusterId/n
Cmd/x CommonInputFiles/x CompletionDate/n ConcurrencyLimits/s CondorScratchDir/x ContainerImage/s ContainerServiceNames/s
ContainerTargetDir/x CoreSize/n CPUInstructions/n CpusProvisioned/n CpusUsage/n CumulativeSuspensionTime/n CurrentHosts/n DeferralPrepTime/n
DeferralTime/n DeferralWindow/n DevShmSize/n DiskProvisioned/n DiskUsage/n DockerContainerName/s DockerImage/s DockerNetworkType/s
DockerOverrideEntrypoint/b DockerPullPolicy/s DockerSendCredentials/b DontEncryptInputFiles/x DontEncryptOutputFiles/x
EncryptExecuteDirectory/b EncryptInputFiles/x EncryptOutputFiles/x EnteredCurrentStatus/n Env/s Environment/s EraseOutputAndErrorOnRestart/b
Err/x ExceptionHierarchy/s ExceptionName/s ExceptionType/s ExecutableSize/n ExecuteDirWasEncrypted/b ExitBySignal/b ExitCode/n ExitReason/s
ExitSignal/n ExitStatus/n FileSystemDomain/s GlobalJobId/s GPUsMaxCapability/n GPUsMinCapability/n GPUsMinMemory/n GPUsMinRuntime/n
HoldKillSig/s HoldReason/s HoldReasonCode/n HoldReasonSubCode/n HookKeyword/s HookStatusCode/n HookStatusMessage/s ImageSize/n In/x
InteractiveJob/b IOWait/n IsHighPrioJob/b IsSuspendableJob/b Iwd/x JarFiles/x JavaVMArgs/s JavaVMArguments/s JobBatchName/s JobCoreDumped/b
JobCurrentStartDate/n JobCurrentStartExecutingDate/n JobDuration/n JobKeyword/s JobLastCheckpointTime/n JobLeaseDuration/n
JobMaxVacateTime/n JobPid/n JobPrio/n JobStartDate/n JobStarterDebug/s JobStarterLog/x JobState/s JobStatus/n JobUniverse/n JobVM_MACADDR/s
JobVM_VCPUS/n JobVMCheckpoint/b JobVMCpuUtilization/n JobVMHardwareVT/b JobVMId/s JobVMMemory/n JobVMNetworking/b JobVMNetworkingType/s
JobVMType/s KillSig/s KillSigTimeout/n LastCheckpointPlatform/s LastCkptServer/s LastCkptTime/n LastMatchTime/n LastRejMatchReason/s
LastRejMatchTime/n LastSuspensionTime/n LastVacateTime/n LocalSysCpu/n LocalUserCpu/n MaxHosts/n MaxJobRetirementTime/n MaxTransferInputMB/n
MaxTransferOutputMB/n MemoryProvisioned/n MemoryUsage/x MinHosts/n MountUnderScratch/x NetworkInputMb/n NetworkOutputMb/n
NewlyCommittedTime/n NiceUser/b Node/n NTDomain/s NumCkpts/n NumGlobusSubmits/n NumJobMatches/n NumJobStarts/n NumPids/n NumRestarts/n
NumSystemHolds/n OAuthServicesNeeded/s OnExitHold/x OnExitRemove/x OrigCmd/x OrigIwd/x OSHomeDir/x OsUser/s Out/x OutputDestination/s
Owner/s periodic_release/x PeriodicHold/x PeriodicRelease/x PeriodicRemove/x PostArguments/s PostCmd/x PreArguments/s PreCmd/x
PreserveRelativeExecutable/b PreserveRelativePaths/b ProcId/n ProportionalSetSizeKb/n ProvisionedResources/s PublicInputFiles/x QDate/n
Rank/x RecentBlockReadKbytes/n RecentBlockReads/n RecentBlockWriteKbytes/n RecentBlockWrites/n ReleaseReason/s RemoteIwd/x RemoteSysCpu/n
RemoteUserCpu/n RemoteWallClockTime/n RemoveKillSig/s RemoveReason/s ReportMappingFailure/b RequestCpus/n RequestDisk/n 
RequestGPUs/n RequestMemory/n RequestVirtualMemory/n RequeueReason/s RequireGPUs/x Requirements/x ResidentSetSize/n RunAsOwner/b RunAsUser/b
Scheduler/s ScratchDirFileCount/n SendCredential/b ShouldTransferFiles/s SingularityBind/s SingularityImage/s SkipIfDataflow/b
SpooledOutputFiles/x SpoolOnEvict/b StackSize/n StarterUserLog/x StarterUserLogUseXML/b StderrMtime/n StdoutMtime/n StreamErr/b StreamIn/b
StreamOut/b SubmitterUserPrio/n SuccessCheckpointExitBySignal/b SuccessCheckpointExitCode/n SuccessCheckpointExitSignal/n SuspendJobAtExec/b
ToolDaemonArguments/s ToolDaemonCmd/x TotalSuspensions/n TransferCheckpoint/x TransferContainer/b TransferErr/b TransferExecutable/b
TransferIn/b TransferInput/x TransferInputRemaps/s TransferInputStats/x TransferKey/s TransferOut/b TransferOutput/x TransferOutputRemaps/s
TransferOutputStats/x TransferPlugins/s TransferSocket/s UidDomain/s User/s VacateReason/s VacateReasonCode/n VacateReasonSubCode/n
VM_CkptIP/s VM_CkptMac/s WantCheckpointSignal/b WantContainer/b WantDelayedUpdates/b WantDocker/b WantDockerImage/b WantFTOnCheckpoint/b
WantGracefulRemoval/b WantIOProxy/b WantParallelSchedulingGroups/b WantRemoteUpdates/b WantSandboxImage/b WantSIF/b WantSL6/b
WantSomeDirMounted/b WantTransferPluginMethods/s WhenToTransferOutput/s x509userproxy/x`
)
