"""Writes plan.toml: which old modules make which new one."""
import sys
P = "tightrope"
merge: dict[str, list[str]] = {}
move: dict[str, str] = {}
drop: list[str] = []

def room(new: str, old: str, **modules: str) -> None:
    """new room; old prefix; new module = 'old modules' relative to the old prefix (or absolute with a leading ^)."""
    for name, olds in modules.items():
        name = name.replace("__", ".")
        merge[f"{P}.{new}.{name}" if new else f"{P}.{name}"] = [f"{P}.{o[1:]}" if o.startswith("^") else f"{P}.{old}.{o}" for o in olds.split()]

move[f"{P}.numerics"] = f"{P}.numerics"
room("numerics", "numerics", complex_functions="complex_exp complex_log", distributions="laws", root_finding="search")
room("randomness", "randomness", bits="source stream counts", alias_sampler="choice alias", integers="integers wide real_chance")

move[f"{P}.privacy"] = f"{P}.accounting"
drop += ["privacy.curves", "privacy.engines", "privacy.engines.contour", "privacy.engines.lattices", "privacy.engines.smoothing", "privacy.engines.sums", "privacy.sampled"]
merge[f"{P}.accounting.distributions"] = [f"{P}.privacy.laws"]
room("accounting", "privacy",
    privacy_loss="loss", loss_pmf="masses", neighbors="neighbours", bounds="curves.bounds laws.interval",
    curves="curves.curves curves.overlap curves.elementwise", gaussian_limit="curves.gaussian_limit", tradeoff="curves.tradeoff curves.convex", epsilon_search="curves.search",
    sampling="sampled.sampling")
room("accounting.distributions", "privacy.laws", base="law flat enclosed", atoms="atoms moment_sum", gaussian="gaussian normal gaussian_size", profile="profile_law profile_check monotone")
room("accounting.distributions", "privacy.sampled", subsampled="subsampled subsampled_atoms", flat_moment="flat_moment mixing", subset="subset subset_gaussian subset_line", shifted_line="shifted_line lifted_path")
move[f"{P}.privacy.laws"] = f"{P}.accounting.distributions"
move[f"{P}.privacy.sampled"] = f"{P}.accounting.distributions"
room("accounting.methods", "privacy.engines",
    select="choice closed_form", method="engine saddle closer",
    contour="contour.contour contour.level contour.jumps", contour_line="contour.contour_integral contour.contour_line contour.line_integral contour.real_axis",
    lattice="lattices.lattice lattices.tilted", lattice_method="lattices.on_lattice lattices.common_step sums.three_point", grid="lattices.grid lattices.gridded lattices.window",
    smoothing="smoothing.smoothed smoothing.apart smoothing.chernoff", smoothing_line="smoothing.smooth_line smoothing.nodes smoothing.alive",
    laplace_sum="sums.laplace_sum sums.many_scales sums.one_scale sums.positive_series", enumeration="sums.enumeration")
room("accounting.filters", "privacy.filters", filter="filter gate basic", gaussian="gaussian equivalent", moments="moments log_moments", menu="menu adaptive dominating declared tokens")

drop += ["mechanisms.choices", "mechanisms.continuous", "mechanisms.integer", "mechanisms.tables", "mechanisms.families"]
room("mechanisms", "mechanisms",
    mechanism="mechanism continuous.continuous continuous.noise_ratio", gaussian="continuous.gaussian integer.discrete_gaussian",
    laplace="continuous.laplace continuous.laplace_law integer.discrete_laplace", staircase="continuous.staircase integer.discrete_staircase",
    truncated_laplace="continuous.truncated_laplace integer.discrete_truncated_laplace",
    randomized_response="integer.randomized_response", exponential="choices.exponential choices.quantile continuous.bounded_range",
    discrete__gaussian_sampling="integer.large_gaussian integer.gaussian_sampling integer.gaussian_envelope", discrete__integer_mechanism="integer.integer_mechanism",
    discrete__scaled_noise="integer.widened integer.linear_losses integer.widened_gaussian", discrete__box_table="tables.box_table tables.box_losses tables.box_points",
    discrete__noise_table="tables.table tables.integer_floats tables.integer_sampling", discrete__table_loss="tables.integer_losses tables.shift_envelope",
    discrete__integer_weights="tables.integer_weights tables.tails", discrete__integer_tables="tables.integer_tables tables.integer_optimum")
room("noise", "mechanisms", families="families.family families.laplace families.gaussian families.rounded_gaussian families.staircase families.truncated_laplace families.exponential_power families.registry",
    family_weights="families.weights families.box_weights")

move[f"{P}.design"] = f"{P}.noise"
drop += ["design.allocation", "design.calibration", "design.compare"]
room("noise", "design",
    real_noise="real_noise program.real_lattice", least_noise="least_noise program.tradeoff_noise", allocation="allocation.allocation allocation.size_search", vector_noise="allocation.vector_noise",
    worst_split="allocation.units allocation.many_rows allocation.contributions", calibrate="calibration.calibrate calibration.parameter_guess calibration.dpsgd",
    parameter_search="calibration.parameter_search calibration.parameter_root",
    compare="compare.noise_comparison compare.gaussian_price compare.frontier calibration.calibration", accountant_comparison="compare.accountants",
    composed__composed_noise="composed.composed_noise composed.shapes composed.pure_composed composed.two_releases", composed__composed_curve="composed.composed_curve composed.composed_slopes",
    composed__candidates="composed.candidates composed.composed_question", composed__lattice_table="composed.lattice_table composed.polish", composed__composed_bound="composed.composed_bound composed.counted_tails",
    program__certificate="program.noise_certificate program.noise_expense", program__closed_form="program.noise_closed_form program.packing_bound", program__request="program.noise_request program.noise_cost",
    program__linear_program="program.noise_program", program__dual="program.noise_dual", program__search="program.noise_search program.noise_window", program__repair="program.noise_repair program.noise_reference")

move[f"{P}.engines"] = f"{P}.tables"
drop += ["engines.ground", "engines.jobs", "engines.snapshot"]
room("tables", "engines",
    engine_calls="guard", files="ground.whole_file ground.private_folder ground.job", jobs="jobs.batches jobs.ordering", snapshot="snapshot.snapshot snapshot.collect snapshot.crowds", labels="labels axis_cells",
    bounding="snapshot.bounding snapshot.rows", group_keys="snapshot.keys", public_table="snapshot.public", memory="snapshot.memory", materialize="snapshot.room snapshot.settled",
    backends__backend="backends.backend backends.streamed backends.relation", backends__registry="backends.known", backends__postgres="backends.postgres backends.postgres_types backends.addresses",
    expressions__tree="expressions.tree expressions.facts", expressions__conditions="expressions.conditions expressions.choices", expressions__functions="expressions.functions expressions.texts expressions.local_time expressions.cells",
    expressions__expression="expressions.written expressions.terms expressions.reading",
    sources__csv="sources.csv_table sources.csv_lines sources.csv_fields sources.dialect", sources__frames="sources.frames sources.objects", sources__databases="sources.duckdb_tables sources.postgres_table", sources__public_tables="sources.lookups", sources__parquet="sources.parquet", sources__parquet_folders="sources.partitions", sources__source="sources.source sources.row_by_row",
    sources__canonical_text="sources.spellings")

room("channels", "channels", channel="channel le_cam row_pairs", kernel="kernel information envelope", product="product symmetric similar_rows")

move[f"{P}.certificates"] = f"{P}.documents"
drop += ["certificates.words"]
room("documents", "certificates", budget="budget guarantee", document="document table", reader="reading places", release="release results planned",
    wording="words.explained words.of_documents words.person", numbers="words.digits words.chances words.guesses", escaping="printable")

drop += ["local.limits.fisher", "local.on_tables", "local.trees", "local.vectors"]
room("local", "local",
    limits__limit="limits.limit limits.hypotheses", limits__bayes="limits.bayes_problem limits.beta_bernoulli", limits__bayes_limit="limits.bayes_limit limits.rare_event", limits__frequencies="limits.shares limits.spikes limits.fisher.in_turn",
    limits__testing="limits.two_point limits.detection", limits__mean="limits.minimax limits.packing",
    limits__fisher_information="limits.fisher.columns limits.fisher.stieltjes limits.fisher.alone limits.fisher.dirichlet limits.fisher.near_uniform limits.fisher.sphere",
    mechanisms__registry="mechanisms.known", mechanisms__bounded_mean="mechanisms.duchi mechanisms.piecewise mechanisms.hybrid", mechanisms__unary="mechanisms.unary mechanisms.permanent", parts__kernels="parts.loops parts.counting parts.finite_field parts.bits", parts__estimates="parts.estimates parts.simplex parts.tally", parts__losses="parts.losses parts.odds parts.matrices parts.channels",
    collection="on_tables.collection on_tables.reports on_tables.columns on_tables.arrow", studies__planning="studies.planning studies.capped studies.comparison", studies__study="studies.study studies.study_file",
    studies__repeated="studies.memoised studies.shuffling", prefix_tree="trees.prefix_tree trees.spelling", quantile_tree="trees.quantile_tree trees.consistent", vectors="vectors.ball vectors.directions vectors.nearest vectors.coordinates")

drop += ["transport.libraries", "transport.metric", "transport.proofs"]
room("transport", "transport",
    costs__graphs="costs.graphs costs.lattices", costs__points="costs.point_clouds costs.real_line", costs__costs="costs.costs costs.laws",
    couplings__mechanism="couplings.coupling_mechanism couplings.membership couplings.person_names couplings.displacement couplings.least_loss couplings.least_maximum",
    exact__plan="exact.exact_plan exact.exact_laws exact.exact_flow", exact__tables="exact.row_tables exact.row_loops exact.group_tables",
    guarantees__lifting="guarantees.distances_of_laws guarantees.lifting", guarantees__learned_distributions="guarantees.learned_laws", guarantees__divergences="guarantees.divergences guarantees.distribution_rules",
    metric_privacy="metric.metric_privacy metric.planar_noise metric.metric_optimum metric.metric_comparison",
    on_tables__supports="on_tables.supports on_tables.counting", on_tables__saved="on_tables.saved on_tables.known_laws",
    solvers__optimal="solvers.optimal solvers.distances", solvers__barycenter="solvers.barycentre solvers.barycentre_programs", solvers__bottleneck="solvers.bottleneck solvers.line_bottleneck", solvers__flow="solvers.edge_flow solvers.flow_paths solvers.exact_paths",
    solvers__arc_pricing="solvers.arc_pricing solvers.tables solvers.multiscale", solvers__monotone="solvers.monotone solvers.north_west", solvers__result="proofs.result proofs.certificates proofs.feasible", solvers__libraries="libraries.pot libraries.ortools_flows")

drop += ["release.questions.asking", "release.questions.widths", "release.derived", "release.quantiles", "release.totals", "release.costs", "release.stated", "release.drafting", "release.documents"]
merge[f"{P}.queries"] = [f"{P}.release.questions"]
room("queries", "release",
    query="questions.node", options="questions.asked questions.asking.keys questions.asking.texts questions.within", column_query="questions.of_column",
    query_group="questions.tasks questions.bounded", statistics="questions.vector questions.fixed_point", intervals="questions.widths.intervals questions.widths.tails questions.widths.two_noises", accuracy="questions.accuracy",
    count="questions.count questions.count_distinct", mean="questions.mean questions.sum", histogram="questions.histogram",
    ratio="derived.ratio derived.odds", proportion="derived.share", moment_estimates="derived.moments derived.joint derived.spans derived.record derived.factors",
    moments="derived.variance derived.pairs derived.covariance derived.correlation", regression="derived.regression derived.line", top_k="derived.top derived.other",
    quantile="quantiles.quantile quantiles.chosen quantiles.counted quantiles.cumulative quantiles.grid")
room("release", "release",
    consistency="totals.related totals.axes totals.fitted totals.spread totals.squares", answers="answers tables", build_answers="answering certificate", execution="recorded stored claims", plan="plan sealed", session="session series", plan_register="register",
    plan_text="wording", bias_check="costs.tallies costs.found costs.planned", suggest="costs.suggested costs.rows_of_person", settings="stated.settings stated.people stated.guarantee stated.extremes",
    draft="drafting.draft drafting.arranged", draft_search="drafting.wanted drafting.moments", plan_file="documents.plan_file documents.plan_document documents.standing kinds", plan_sections="documents.sections documents.starter")

drop += ["ledger.storage"]
room("ledger", "ledger", identity="identity claim", account="account ledger", state="state shares rules costs", noise_record="recipe composed", overview="overview running",
    chain="storage.chain storage.entry storage.tables", store="storage.store storage.making storage.book", places="storage.places")

move[f"{P}.report"] = f"{P}.reporting"
drop += ["report.pictures", "report.pages", "report.words"]
room("reporting", "report",
    pages__document_page="pages.page pages.policy pages.papers", pages__release_page="pages.page_model pages.table", pages__account_page="pages.account_page pages.attack_view", pages__study_page="pages.study_page pages.plan_page",
    pages__coupling_page="pages.coupling_page", pages__noise_page="pages.noise_page", pages__blocks="pages.blocks pages.attached",
    charts__page_charts="pictures.scale pictures.dots pictures.curves pictures.hundred", charts__plots="pictures.plots pictures.audits pictures.couplings", charts__panels="pictures.panels",
    wording__answers="words.answers words.further words.interval", wording__promise="words.promise words.attacker", wording__sentences="words.wording", wording__document="words.document", wording__method="words.method", wording__study="words.study", wording__accounts="words.accounts")
merge[f"{P}.reporting.charts"] = [f"{P}.report.pictures"]
drop.remove("report.pictures")

move[f"{P}.reproduce"] = f"{P}.papers"
room("papers", "reproduce", gdgk__bounds="gdgk.bounds gdgk.printed gdgk.tightness gdgk.gaussians", gi_v1__divergences="gi_v1.divergences gi_v1.leakage", aac__minimax="aac.minimax aac.testing", run="run registry", item="item judges")
drop += ["cli.account", "cli.audit", "cli.ledger", "cli.release"]
room("cli", "cli", account="account.account account.steps account.attack", dpsgd="account.dpsgd", audit="audit.audit audit.sources", couple__group="couple.couple", local__perturb="local.perturb local.estimate", ledger="ledger.ledger ledger.view", init="release.init release.ask",
    release="release.release release.patience", output_files="release.folder release.parts release.last_resort", plan="release.plan", errors="failures", output="output tables", papers="reproduce", options="options pages")

room("verify", "verify", steps="steps pairs", forms="forms shapes")
merge[f"{P}.errors"] = [f"{P}.errors", f"{P}.cli.signals"]
room("studio", "studio", server="serve app guard counter", plan_editor="desk worker", plan_draft="draft offers figures needed", plan_form="wishes toml_text opened")
room("audit", "audit", rates="rates hulls bands", findings="findings claims verdicts power", scores="score_bounds held_out known_laws classifier doubles")

lines = ["[merge]"]
lines += [f'"{new}" = [{", ".join(chr(34) + o + chr(34) for o in olds)}]' for new, olds in merge.items()]
rename = {
    "privacy.engines.sums.one_scale:fits": "fits_one_scale", "privacy.engines.sums.many_scales:fit": "fits_many_scales",
    "design.composed.two_releases:_last": "_last_halving", "release.drafting.moments:CLOSE_ENOUGH": "CLOSE_BY_MOMENTS", "release.drafting.moments:LEAST": "LEAST_BY_MOMENTS",
    "release.drafting.moments:UPWARDS": "UPWARDS_BY_MOMENTS", "release.documents.sections:MEANS": "MEANING", "engines.backends.addresses:checked": "checked_address",
    "privacy.sampled.subset_gaussian:cut_for": "subset_cut_for",
}
lines += ["", "[rename]", *[f'"{P}.{a}" = "{b}"' for a, b in rename.items()]]
lines += ["", "[move]", *[f'"{a}" = "{b}"' for a, b in move.items()], "", "[drop]", "packages = [" + ", ".join(f'"{P}.{d}"' for d in drop) + "]"]
open(sys.argv[1], "w").write("\n".join(lines) + "\n")
