;;; tk-mode.el --- Major mode for tk, a language for GPU kernels  -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: languages

;;; Commentary:

;; File type, colors, indentation and imenu of `.tk' files without a server, and the registration of
;; the server `tk lsp' with eglot.  The words are those of spec/01-lexical.md, the indentation is that
;; of `tk fmt'.  May assume nothing about the text, which is often incomplete.

;;; Code:

(require 'imenu)

(defgroup tk nil
  "The tk language."
  :group 'languages
  :prefix "tk-")

(defcustom tk-command "tk"
  "The command of the language: a name on the search path, or a file."
  :type 'string)

(defcustom tk-indent-offset 4
  "Columns of a level of indentation; `tk fmt' writes 4."
  :type 'integer
  :safe #'integerp)

;;;; Syntax

(defvar tk-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?_ "_" table)
    (modify-syntax-entry ?/ ". 12" table)
    (modify-syntax-entry ?\n ">" table)
    (modify-syntax-entry ?\" "\"" table)
    (modify-syntax-entry ?\\ "\\" table)
    (dolist (char (string-to-list "+-*%&|^<>=!?@.,;:'`#$~"))
      (modify-syntax-entry char "." table))
    table)
  "Syntax table of `tk-mode'.")

(defun tk--syntax-propertize (start end)
  "Let strings between START and END that are not closed end with their line."
  (goto-char start)
  (while (re-search-forward "//.*$\\|\\(\"\\)\\(?:[^\"\\\n]\\|\\\\.\\)*\\(?:\"\\|\\\\?\\(\n\\)\\)" end t)
    (when (match-beginning 2)
      (put-text-property (match-beginning 1) (match-end 1) 'syntax-table '(15))
      (put-text-property (match-beginning 2) (match-end 2) 'syntax-table '(15)))))

(defun tk--syntactic-face (state)
  "The face of the string or comment of STATE: `///' documents, `////' does not."
  (cond ((nth 3 state) font-lock-string-face)
        ((save-excursion (goto-char (nth 8 state)) (looking-at "///\\(?:[^/]\\|$\\)")) font-lock-doc-face)
        (t font-lock-comment-face)))

;;;; Colors

(defconst tk--keywords
  '("as" "break" "const" "continue" "else" "fn" "for" "if" "in" "kernel" "let" "mut" "return" "struct" "use" "while")
  "The words that are never names, but for those of `tk--constants'.")

(defconst tk--constants '("true" "false" "None")
  "The words that are values.")

(defconst tk--clauses '("grid" "launch" "tune" "require" "prefer" "alias" "scratch")
  "The words that are keywords before a parenthesis, on a line of their own.")

(defconst tk--element-types
  '("bool" "i8" "i16" "i32" "i64" "u8" "u16" "u32" "u64" "f16" "bf16" "f32" "f64"
    "f8e4m3" "f8e5m2" "f8e4m3fnuz" "f8e5m2fnuz" "e2m1" "e8m0")
  "The element types.")

(defconst tk--name "[[:alpha:]_][[:alnum:]_]*"
  "Matches a name.")

(defconst tk--attributes (concat "\\(?:@" tk--name "[ \t]+\\)*")
  "Matches the attributes of an item.")

(defconst tk--item
  (concat "^" tk--attributes
          "\\(?:\\(?:use\\|const\\|struct\\|fn\\|kernel\\)\\_>\\|export[ \t]+[[:alpha:]_]\\|test[ \t]*\"\\)")
  "Matches the start of an item in the first column.")

(defconst tk--clause (concat (regexp-opt tk--clauses) "[ \t]*(")
  "Matches the start of a clause.")

(defun tk--word-matcher (regexp not-before)
  "A matcher of words like REGEXP that are no members, and not before NOT-BEFORE."
  (let ((regexp (concat "\\_<\\(?:" regexp "\\)\\_>")))
    (lambda (limit)
      (let ((case-fold-search nil) (found nil))
        (while (and (not found) (re-search-forward regexp limit t))
          (setq found (not (or (eq (char-before (match-beginning 0)) ?.)
                               (save-match-data (looking-at not-before))))))
        found))))

(defconst tk-font-lock-keywords
  `((,(concat "@" tk--name) . font-lock-preprocessor-face)
    (,(concat "\\_<\\(kernel\\|fn\\)[ \t]+\\(" tk--name "\\)")
     (1 font-lock-keyword-face) (2 font-lock-function-name-face))
    (,(concat "\\_<\\(struct\\)[ \t]+\\(" tk--name "\\)")
     (1 font-lock-keyword-face) (2 font-lock-type-face))
    ("\\_<\\(test\\|assert_error\\)[ \t]*\"" 1 font-lock-keyword-face)
    ("^[ \t]*\\(export\\)[ \t]+[[:alpha:]_]" 1 font-lock-keyword-face)
    (,(concat "^[ \t]*" (regexp-opt tk--clauses t) "[ \t]*(") 1 font-lock-keyword-face)
    (,(concat "\\_<" (regexp-opt tk--keywords) "\\_>") . font-lock-keyword-face)
    (,(concat "\\_<" (regexp-opt tk--constants) "\\_>") . font-lock-constant-face)
    (,(tk--word-matcher "inf\\|nan" "[ \t]*\\(?:[.([:]\\|=\\(?:[^=]\\|$\\)\\)") . font-lock-constant-face)
    (,(tk--word-matcher (regexp-opt tk--element-types) "[ \t]*[(:]") . font-lock-type-face)
    (,(tk--word-matcher "tile\\|view" "[^[]\\|$") . font-lock-type-face)
    (,(concat "\\_<\\(" tk--name "\\)[ \t]*::") 1 font-lock-constant-face)
    (,(tk--word-matcher "_*[[:upper:]][[:upper:]0-9_]*" "[ \t]*(") . font-lock-constant-face)
    (,(tk--word-matcher "_*[[:upper:]][[:alnum:]_]*[[:lower:]][[:alnum:]_]*" regexp-unmatchable) . font-lock-type-face)
    (,(concat "\\_<let[ \t]+\\(?:mut[ \t]+\\)?\\(" tk--name "\\)") 1 font-lock-variable-name-face))
  "Colors of `tk-mode'.")

;;;; Indentation

(defconst tk--operators
  '(("||" . 1) ("&&" . 2)
    ("==" . 3) ("!=" . 3) ("<=" . 3) (">=" . 3) ("<<" . 7) (">>" . 7) ("<" . 3) (">" . 3)
    ("|" . 4) ("^" . 5) ("&" . 6) ("+" . 8) ("-" . 8) ("*" . 9) ("/" . 9) ("%" . 9))
  "The operators between two operands, and how tight they bind.")

(defconst tk--operator (regexp-opt (mapcar #'car tk--operators))
  "Matches an operator.")

(defun tk--binding ()
  "How tight the operator at point binds, or nil."
  (and (looking-at tk--operator)
       (not (looking-at "//\\|->"))
       (cdr (assoc (match-string-no-properties 0) tk--operators))))

(defun tk--first-on-line-p ()
  "Whether there is only space before point on its line."
  (save-excursion (skip-chars-backward " \t") (bolp)))

(defun tk--skip-forward ()
  "Move over spaces and comments."
  (forward-comment (buffer-size)))

(defun tk--skip-backward ()
  "Move back over spaces and comments."
  (forward-comment (- (buffer-size))))

(defun tk--back-over-token ()
  "Move back over a token, or a pair of brackets; nil at the start of an element."
  (tk--skip-backward)
  (let ((before (char-before)))
    (cond ((or (null before) (memq before '(?, ?\; ?{ ?} ?\( ?\[))) nil)
          ((memq before '(?\) ?\] ?\")) (condition-case nil (progn (backward-sexp) t) (scan-error nil)))
          ((/= 0 (skip-syntax-backward "w_")))
          (t (backward-char) t))))

(defun tk--forward-over-token ()
  "Move over a token, or a pair of brackets; nil at the end of an element."
  (tk--skip-forward)
  (let ((after (char-after)))
    (cond ((or (null after) (memq after '(?, ?\; ?{ ?} ?\) ?\]))) nil)
          ((memq after '(?\( ?\[ ?\")) (condition-case nil (progn (forward-sexp) t) (scan-error nil)))
          ((/= 0 (skip-syntax-forward "w_")))
          (t (forward-char) t))))

(defun tk--level ()
  "How many levels this line is below the first line of its element.
An element breaks before its loosest operators; what is between two of them
is a level deeper if it breaks too."
  (let* ((own (or (tk--binding) (if (looking-at "\\.") 10)))
         (looser nil)
         (least own)
         (see (lambda ()
                (let ((binding (and (tk--first-on-line-p) (tk--binding))))
                  (when (and binding (< binding least))
                    (setq least binding)
                    (push (cons (point) binding) looser))))))
    (if (null own)
        1
      (save-excursion
        (while (and (tk--back-over-token) (progn (funcall see) t)))
        ;; An operator that an element starts with is a prefix, or the start of a lambda.
        (tk--skip-forward)
        (setq looser (assq-delete-all (point) looser)))
      (setq least own)
      (save-excursion
        (while (and (tk--forward-over-token) (progn (tk--skip-forward) (funcall see) t))))
      (1+ (length (delete-dups (mapcar #'cdr looser)))))))

(defun tk--group-p (open)
  "Whether the bracket at OPEN is neither of a call nor of a tuple."
  (save-excursion
    (goto-char open)
    (and (eq (char-after) ?\()
         (progn
           (tk--skip-backward)
           (or (memq (char-before) '(nil ?\( ?\[ ?{ ?, ?\;))
               (and (not (memq (char-before) '(?\) ?\] ?} ?\")))
                    (or (= 0 (skip-syntax-backward "w_"))
                        (looking-at "\\(?:as\\|else\\|if\\|in\\|return\\|while\\)\\_>")))))
         (progn
           (goto-char (1+ open))
           (while (tk--forward-over-token))
           (not (eq (char-after) ?,))))))

(defun tk--last-on-line-p (open)
  "Whether only the parameters of a lambda follow the bracket at OPEN on its line."
  (save-excursion
    (goto-char (1+ open))
    (looking-at "[ \t]*\\(?:|[^|\n]*|[ \t]*\\)?\\(?://\\|$\\)")))

(defun tk--row-of-tune-p (open)
  "Whether the brace at OPEN encloses the rows of a `tune' clause."
  (save-excursion
    (goto-char open)
    (tk--skip-backward)
    (and (eq (char-before) ?\))
         (condition-case nil (progn (backward-sexp) t) (scan-error nil))
         (progn (tk--skip-backward) (looking-back "\\_<tune" (line-beginning-position))))))

(defun tk--continues-p (open)
  "Whether point continues what is before it in the bracket at OPEN."
  (let ((before (save-excursion (tk--skip-backward) (char-before))))
    (cond ((or (null before) (memq before '(?, ?\; ?{ ?\( ?\[))) nil)
          ((eq before ?})
           (or (looking-at "[+/%^.]\\|&&\\|||\\|[=!<>]=\\|<<\\|>>\\|as\\_>")
               (if open
                   (and (looking-at "if\\_>") (tk--row-of-tune-p open))
                 (looking-at (concat "{\\|" tk--clause)))))
          (open t)
          (t (not (looking-at tk--item))))))

(defun tk--indentation ()
  "The column of the line of point."
  (save-excursion
    (back-to-indentation)
    (let* ((open (nth 1 (syntax-ppss)))
           (column (if open (save-excursion (goto-char open) (current-indentation)) 0))
           (blank (eolp))
           (comment (looking-at "//")))
      (if (and open (looking-at "[])}]"))
          column
        (when open
          (setq column (+ column tk-indent-offset)))
        ;; A comment belongs to what follows it.
        (when comment
          (tk--skip-forward))
        (cond ((not (tk--continues-p open)) column)
              ((looking-at "{") (if comment (+ column tk-indent-offset) column))
              ((looking-at "[])}]") column)
              (blank (+ column tk-indent-offset))
              ((and open (not (tk--last-on-line-p open))) column)
              (t (+ column (* tk-indent-offset (- (tk--level) (if (and open (tk--group-p open)) 1 0))))))))))

(defun tk-indent-line ()
  "Indent the line of point as `tk fmt' does."
  (interactive)
  (let ((column (tk--indentation)))
    (if (<= (current-column) (current-indentation))
        (indent-line-to column)
      (save-excursion (indent-line-to column)))))

;;;; Items

(defun tk-beginning-of-defun (&optional count)
  "Move back to the start of an item, COUNT times; forward if it is negative."
  (let ((count (or count 1)))
    (if (< count 0)
        (progn
          (when (looking-at tk--item)
            (end-of-line))
          (if (re-search-forward tk--item nil 'end (- count))
              (progn (goto-char (match-beginning 0)) t)))
      (re-search-backward tk--item nil 'start count))))

(defun tk-end-of-defun ()
  "Move from the start of an item to its end."
  (end-of-line)
  (if (re-search-forward tk--item nil 'end)
      (goto-char (match-beginning 0)))
  (tk--skip-backward)
  (forward-line))

(defvar tk-imenu-generic-expression
  (let ((item (concat "^[ \t]*" tk--attributes)))
    `(("Kernel" ,(concat item "kernel[ \t]+\\(" tk--name "\\)") 1)
      ("Function" ,(concat item "fn[ \t]+\\(" tk--name "\\)") 1)
      ("Struct" ,(concat item "struct[ \t]+\\(" tk--name "\\)") 1)
      ("Test" "^test[ \t]*\"\\(\\(?:[^\"\\\n]\\|\\\\.\\)*\\)\"" 1)))
  "The entries of imenu.")

;;;; The mode

;;;###autoload
(define-derived-mode tk-mode prog-mode "tk"
  "Major mode for files of the tk language."
  (setq-local comment-start "// ")
  (setq-local comment-end "")
  (setq-local comment-start-skip "//+[ \t]*")
  (setq-local indent-tabs-mode nil)
  (setq-local indent-line-function #'tk-indent-line)
  (setq-local electric-indent-chars (append "{}()[]" electric-indent-chars))
  (setq-local fill-column 100)
  (setq-local syntax-propertize-function #'tk--syntax-propertize)
  (setq-local font-lock-defaults
              '(tk-font-lock-keywords nil nil nil (font-lock-syntactic-face-function . tk--syntactic-face)))
  (setq-local imenu-generic-expression tk-imenu-generic-expression)
  (setq-local imenu-case-fold-search nil)
  (setq-local beginning-of-defun-function #'tk-beginning-of-defun)
  (setq-local end-of-defun-function #'tk-end-of-defun))

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.tk\\'" . tk-mode))

(defun tk-language-server (&rest _)
  "The command of the language server, for eglot."
  (list tk-command "lsp"))

(defvar eglot-server-programs)
;;;###autoload
(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs '(tk-mode . tk-language-server)))

(provide 'tk-mode)

;;; tk-mode.el ends here
