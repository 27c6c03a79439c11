// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

// The programs that take the options and exit statuses of HTCondor's programs
// of the same names.

// Startd is condor_startd.
var Startd = Program{
	Name: "condor_startd", Does: "make this machine an Execution Point of an HTCondor pool", Version: "-v",
	Commands: []Command{{
		Synopsis: []string{"[-f] [-t] [-c FILE] [-p PORT] [-n NAME] [-local-name NAME]"},
		Does:     "Make this machine an Execution Point of an HTCondor pool. condor_master starts it, a service manager, or a person.",
		Options: []Option{
			{Name: "f", Text: "stay in the foreground (it always does)"},
			{Name: "t", Text: "log to standard error instead of STARTD_LOG"},
			{Name: "c", Arg: "FILE", Text: "the configuration (default: CONDOR_CONFIG, then /etc/condor/condor_config, then that of the user condor)"},
			{Name: "p", Arg: "PORT", Also: []string{"port"}, Text: "listen at this port (default: any)"},
			{Name: "n", Arg: "NAME", Text: "the name of this Execution Point (STARTD_NAME)"},
			{Name: "local-name", Arg: "NAME", Text: "read knobs of this local name"},
			{Name: "v", Also: []string{"version"}, Text: "print the version"},
			{Name: "h", Also: []string{"help"}, Text: "this text"},
		},
		Statuses: []Status{
			{0, "shut down as it was asked to"},
			{1, "bad command line"},
			{4, "it could not begin, or something happened that must not; its log says what. condor_master starts it again"},
			{44, "the log cannot be written"},
			{99, "shut down, and condor_master is not to start it again"},
		},
	}},
}

// Starter is condor_starter.
var Starter = Program{
	Name: "condor_starter", Does: "run one job, for a startd of this project or for a schedd", Version: "-version",
	Commands: []Command{{
		Synopsis: []string{"", "-classad", "-job-cluster N -job-proc N -job-input-ad FILE -schedd-addr ADDRESS [-f] [-header TEXT]"},
		Does: "Run one job: for a startd of this project, which starts it and speaks to it through its standard input and output, or, with the arguments " +
			"of a schedd (STARTER_LOCAL), a job of the local universe. There is nothing in it for a person but -classad.",
		Options: []Option{
			{Name: "classad", Text: "print what starters can do on this machine"},
			{Name: "job-cluster", Arg: "N", Text: "the job of a schedd, with -job-proc"},
			{Name: "job-proc", Arg: "N", Text: "the same"},
			{Name: "job-input-ad", Arg: "FILE", Text: "where its ad is; - is standard input"},
			{Name: "schedd-addr", Arg: "ADDRESS", Text: "where the schedd is that started us"},
			{Name: "header", Arg: "TEXT", Text: "taken, and means nothing"},
			{Name: "f", Text: "the same"},
			{Name: "version", Text: "print the version"},
			{Name: "help", Text: "this text"},
		},
		Statuses: []Status{
			{0, "the activation ended, well or not, and the startd was told"},
			{1, "the startd said something that is no message of this version of the protocol, or this machine cannot run jobs; for a schedd: the job could not be begun, and is idle again"},
			{2, "bad command line"},
			{3, "the sandbox could not be removed"},
			{100, "for a schedd: the job is done"},
			{107, "for a schedd: the job is to run again"},
			{112, "for a schedd: the job is to be held"},
			{113, "for a schedd: the job went, as it was told to"},
			{114, "for a schedd: the job's time to begin had passed"},
		},
	}},
}

// ConfigVal is condor_config_val.
var ConfigVal = Program{
	Name: "condor_config_val", Does: "print what the configuration says, and where it says so", Version: "-version",
	Commands: []Command{{
		Synopsis: []string{"[OPTIONS] NAME...", "[OPTIONS] -dump [PATTERN...]", "use CATEGORY[:NAME]", "-summary | -writeconfig FILE | -config"},
		Does:     "Print what each NAME is set to; all names, or those that match a pattern; or a template, or a list of them. Options may be shortened as those of HTCondor's program.",
		Options: []Option{
			{Text: "Values are expanded, unless one of these is given:"},
			{Name: "raw", Text: "as the file has it"},
			{Name: "expanded", Text: "expanded (with -dump, which shows the raw text otherwise)"},
			{Name: "default", Text: "the default of the table"},
			{Name: "evaluate", Text: "evaluated as an expression (with -snapshot)"},
			{Name: "macro", Arg: "[:path]", Text: "NAME is a text with macros; with path the result is cleaned"},
			{Name: "verbose", Text: "with file, line, template and raw text"},
			{Name: "info", Text: "and what the table of knobs knows"},
			{Name: "trace", Text: "print each value that a later line replaces"},
			{Name: "mixedcase", Text: "accepted; names are always printed as they were written"},
			{Name: "debug", Arg: "[:WORDS]", Text: "accepted"},
			{Text: "What is printed:"},
			{Name: "dump", Text: "all names, or those that match one of the patterns"},
			{Name: "used", Text: "of these only what was asked for"},
			{Name: "unused", Text: "of these only what was not"},
			{Name: "summary", Arg: "[:detected]", Text: "what files and environment change, by source"},
			{Name: "config", Text: "the sources that were read"},
			{Name: "writeconfig", Arg: "[:W,...] FILE", Text: "write the configuration. W: default, matches_default, detected, environment, file, only, duplicate, upgrade, sort, source, and comment before any of the first five"},
			{Name: "check-if", Arg: "CONDITION", Text: "test a condition as it may stand behind \"if\""},
			{Name: "owner", Text: "the account HTCondor runs as"},
			{Name: "tilde", Text: "its home"},
			{Text: "What is read:"},
			{Name: "root-config", Arg: "FILE", Text: "instead of what CONDOR_CONFIG or the usual places name"},
			{Name: "snapshot", Arg: "FILE", Text: "instead of files: what a running Execution Point wrote"},
			{Name: "subsystem", Arg: "NAME", Text: "as that daemon sees it (TOOL)"},
			{Name: "local-name", Arg: "NAME", Text: "and under that local name"},
			{Text: "Which daemon is asked, with -raw, -default, -verbose or none of these:"},
			{Name: "name", Arg: "NAME", Text: "the one of that name, or of that machine; a master unless one of the next says otherwise"},
			{Name: "startd", Also: []string{"master", "schedd"}, Text: "of that kind; without -name that of this machine"},
			{Name: "pool", Arg: "POOL", Text: "the collector that knows NAME (default: COLLECTOR_HOST)"},
			{Name: "address", Arg: "ADDR", Text: "the one at that address, of any kind"},
			{Name: "collector", Also: []string{"negotiator"}, Text: "of that kind, with -address"},
			{Name: "set", Also: []string{"unset", "rset", "runset"}, Text: "refused here; HTCondor's condor_config_val changes daemons of this project too"},
			{Text: "About the program:"},
			{Name: "help", Text: "this text"},
			{Name: "version", Text: "print the version"},
		},
		Statuses: []Status{
			{0, "done"}, {1, "a name is not defined, something cannot be read, or the command line is bad"}, {2, "the file of -writeconfig cannot be written"},
		},
	}},
}

// GPUDiscovery is condor_gpu_discovery.
var GPUDiscovery = Program{
	Name: "condor_gpu_discovery", Does: "print the GPUs of this machine as the startd reads them", Version: "-version",
	Commands: []Command{{
		Synopsis: []string{"[options]"},
		Does:     "Print the GPUs of this machine as the startd reads them. Options may be shortened.",
		Options: []Option{
			{Text: "What is printed:"},
			{Name: "properties", Text: "the properties that jobs are matched by"},
			{Name: "extra", Text: "more properties: clock, units, cores"},
			{Name: "dynamic", Text: "what changes while a device works: temperature, power, fan, memory errors"},
			{Name: "mixed", Also: []string{"hetero"}, Text: "every property with its device, none as common to all"},
			{Name: "nested", Text: "one ClassAd per device (default)"},
			{Name: "not-nested", Also: []string{"no-nested"}, Text: "attributes with the device or a prefix before their names"},
			{Name: "prefix", Arg: "<string>", Text: "prefix of -not-nested and -by-index: CUDA, GPU (HIP) or OCL"},
			{Name: "tag", Arg: "<string>", Text: "name of the resource in Detected<tag>, GPUs"},
			{Name: "config", Text: "the syntax of configuration files, and NUM_DETECTED_<tag>"},
			{Name: "cron", Text: "without the list of devices, for STARTD_CRON"},
			{Text: "Names of devices:"},
			{Name: "short-uuid", Text: "the first 8 digits of the UUID (default)"},
			{Name: "uuid", Text: "the whole UUID"},
			{Name: "by-index", Text: "the number"},
			{Text: "Which devices:"},
			{Name: "device", Arg: "<list>", Text: "only these numbers, or names that begin so; may be given again"},
			{Name: "cuda", Also: []string{"hip", "opencl"}, Text: "only these libraries; otherwise the first of them that shows a device"},
			{Name: "nvcuda", Text: "CUDA's driver library only"},
			{Name: "cudart", Text: "CUDA's run-time library only"},
			{Name: "dirty-environment", Text: "leave CUDA_VISIBLE_DEVICES and the like to the libraries"},
			{Name: "fix-hip-guid", Arg: "<hex>", Text: "the model number that completes UUIDs of AMD's devices"},
			{Name: "simulate", Arg: "[:D[,N[,D2,N2...]]]", Text: "N devices of kind D, without asking a library\n" +
				" 0  GeForce GT 330       4  A100-SXM4-40GB\n" +
				" 1  GeForce GTX 480      5  A100, 3g.20gb, old names\n" +
				" 2  Tesla V100-PCIE-16GB 6  A100, 1g.5gb\n" +
				" 3  TITAN RTX            7  A100, 3g.20gb\n" +
				" 8  one of each"},
			{Text: "How often:"},
			{Name: "repeat", Arg: "[<N>]", Text: "every device N (2) times"},
			{Name: "divide", Arg: "[<N>]", Text: "so too, with an Nth of GlobalMemoryMb each"},
			{Name: "packed", Text: "the same devices next to each other"},
			{Text: "Finding out what is wrong:"},
			{Name: "verbose", Text: "name the devices that were found"},
			{Name: "diagnostic", Text: "tell every step"},
			{Name: "help", Text: "this text"},
			{Name: "version", Text: "print the version"},
		},
		Statuses: []Status{{0, "done, also where no device is found (DetectedGPUs=0)"}, {1, "a wrong option, or a driver that cannot say which devices there are"}},
	}},
}

// benchmark is one of the two programs that measure.
func benchmark(name, does, attribute string) Program {
	return Program{
		Name: name, Does: does, Version: "-version",
		Commands: []Command{{
			Synopsis: []string{"[-json]"},
			Does:     sentence(does) + " It takes about a second. An unclaimed slot runs it when RunBenchmarks says so.",
			Options: []Option{
				{Name: "json", Text: "a JSON object instead of the lines that the startd reads: {\"" + attribute + "\": N}"},
				{Name: "version", Text: "print the version"},
			},
			Statuses: []Status{{OK, "done"}, {No, "not measured, or the result cannot be written"}, {Misused, "bad command line"}},
		}},
	}
}

// Mips and Kflops are condor_mips and condor_kflops.
var (
	Mips   = benchmark("condor_mips", "measure how fast one core of this machine is on whole numbers", "Mips")
	Kflops = benchmark("condor_kflops", "measure how fast one core of this machine is on floating-point numbers", "KFlops")
)
